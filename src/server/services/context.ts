import { RsmError } from '../../core/errors.ts'
import type { Age } from '../../disk/agreed-clock.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import type { Passwords } from '../access/passwords.ts'
import type { HandedOut } from '../agents/releases/handed-out.ts'
import type { FileKeeper } from '../files/files.ts'
import type { Transfers } from '../files/transfers.ts'
import type { Fleet } from '../hosts/fleet.ts'
import type { LocalFacts } from '../storage/local-facts.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import type { Ownership, Shared } from '../storage/ports/cluster.ts'
import type { Hints } from '../storage/ports/hints.ts'
import type { Keys } from '../storage/ports/keys.ts'
import type { Outputs } from '../storage/ports/outputs.ts'
import type { History, Presence } from '../storage/ports/presence.ts'
import type { ShortLived } from '../storage/ports/short-lived.ts'
import type { ScriptVersions, Store } from '../storage/ports/store.ts'
import type { Recordings } from '../storage/ports/terminals.ts'
import type { Engine } from '../tasks/engine.ts'
import type { Terminals, Tickets } from '../terminals/terminals.ts'
import type { Deliveries } from '../webhooks/deliveries.ts'
import type { WebhookEvents } from '../webhooks/events.ts'
import type { Judge } from '../webhooks/judge.ts'
import { Batches, type ReadersOfTasks } from './logs/readers.ts'

/** A service of core/services.ts whose methods get the caller first. */
export type ForCallers<Service, C = UserCaller> = {
  [M in keyof Service]: Service[M] extends (...args: infer A) => infer R
    ? (caller: C, ...args: A) => R
    : never
}

export interface Context {
  store: Store
  fleet: Fleet
  presence: Presence
  history: History
  engine: Engine
  ownership: Pick<Ownership, 'owner'>
  /** Null if the store is not shared. */
  shared: Shared | null
  outputs: Outputs
  terminals: Terminals
  tickets: Tickets
  recordings: Recordings
  files: FileKeeper
  transfers: Transfers
  shortLived: ShortLived
  hints: Hints
  facts: LocalFacts
  readers: ReadersOfTasks
  batches: Batches
  versions: ScriptVersions
  keys: Keys
  passwords: Passwords
  handedOut: HandedOut
  webhookEvents: WebhookEvents
  deliveries: Pick<Deliveries, 'test'>
  judge: Judge
  /** Age by the agreed clock; use it for everything that expires. */
  agreed: { age(): Age }
  clock: Clock
  log: Log
  /** Current time, as records hold it. */
  time(): string
}

export function createContext(parts: Omit<Context, 'time' | 'batches'>): Context {
  const { outputs, readers } = parts
  return {
    ...parts,
    batches: new Batches(outputs, (taskId) => readers.areSeveral(taskId)),
    time: () => isoTime(parts.clock.now()),
  }
}

/** Announces that an agent's token ended: its link closes on any server, and one audit entry is written. */
export function publishTokenEnded({ facts, hints }: Pick<Context, 'facts' | 'hints'>, agentId: string): void {
  facts.publish('agentTokenEnded', { agentId })
  hints.publish('agentRevoked', { id: agentId })
}

export function notFound(what: string, id: number | string): RsmError {
  return new RsmError('not_found', `no such ${what}: ${id}`)
}

/** Merge patch (RFC 7396) of one field: undefined keeps it, null resets it to `absent`, else it is replaced. */
export function patched<T>(change: T | null | undefined, current: T, absent: T): T {
  if (change === undefined) return current
  return change === null ? absent : change
}

/** Merge patch (RFC 7396) of an object of strings: objects merge, a null removes its key, null removes all. */
export function patchedMap(
  change: Record<string, string | null> | null | undefined,
  current: Record<string, string>,
): Record<string, string> {
  if (change === undefined) return current
  const next = { ...(change === null ? {} : current) }
  for (const [key, value] of Object.entries(change ?? {}))
    if (value === null) delete next[key]
    else next[key] = value
  return next
}
