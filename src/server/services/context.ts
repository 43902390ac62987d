import { RsmError } from '../../core/errors.ts'
import type { Age } from '../../disk/agreed-clock.ts'
import type { UserCaller } from '../access/caller.ts'
import type { Passwords } from '../access/passwords.ts'
import { type Clock, isoTime } from '../clock.ts'
import type { Engine } from '../engine/engine.ts'
import type { FileKeeper } from '../files/files.ts'
import type { Transfers } from '../files/transfers.ts'
import type { ReadersOfTasks } from '../housekeeping/readers-of-tasks.ts'
import type { LocalFacts } from '../local-facts.ts'
import type { Log } from '../log.ts'
import type { HandedOut } from '../releases/handed-out.ts'
import type { Ownership, Shared } from '../seams/cluster.ts'
import type { Hints } from '../seams/hints.ts'
import type { Keys } from '../seams/keys.ts'
import type { Outputs } from '../seams/outputs.ts'
import type { History, Presence } from '../seams/presence.ts'
import type { Recordings } from '../seams/recordings.ts'
import type { ShortLived } from '../seams/short-lived.ts'
import type { ScriptVersions, Store } from '../seams/store.ts'
import type { Terminals } from '../terminals/terminals.ts'
import type { Tickets } from '../terminals/tickets.ts'
import type { Deliveries } from '../webhooks/deliveries.ts'
import type { WebhookEvents } from '../webhooks/events.ts'
import type { Judge } from '../webhooks/judge.ts'
import type { Fleet } from './hosts/fleet.ts'
import { Batches } from './logs/batches.ts'

/** A service of core/services.ts whose methods are told first who calls. */
export type ForCallers<Service, C = UserCaller> = {
  [M in keyof Service]: Service[M] extends (...args: infer A) => infer R
    ? (caller: C, ...args: A) => R
    : never
}

/** What the services stand on. */
export interface Context {
  store: Store
  fleet: Fleet
  presence: Presence
  history: History
  engine: Engine
  ownership: Pick<Ownership, 'owner'>
  /** Null where the store is this server's alone. */
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
  /** Who reads the log of a task just now. */
  readers: ReadersOfTasks
  /** What followers of logs share. */
  batches: Batches
  versions: ScriptVersions
  keys: Keys
  passwords: Passwords
  handedOut: HandedOut
  webhookEvents: WebhookEvents
  deliveries: Pick<Deliveries, 'test'>
  /** Where webhooks may lead. */
  judge: Judge
  /** How old something is, as far as the clock is agreed: whatever ends by age asks here. */
  agreed: { age(): Age }
  clock: Clock
  log: Log
  /** Now, as records hold it. */
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

/** After an agent's token has ended: its link closes wherever it is, and the audit log has it once. */
export function tellTokenEnded({ facts, hints }: Pick<Context, 'facts' | 'hints'>, agentId: string): void {
  facts.publish('agentTokenEnded', { agentId })
  hints.publish('agentRevoked', { id: agentId })
}

export function notFound(what: string, id: number | string): RsmError {
  return new RsmError('not_found', `no such ${what}: ${id}`)
}
