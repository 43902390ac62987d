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
import type { Recordings } from '../storage/ports/recordings.ts'
import type { ShortLived } from '../storage/ports/short-lived.ts'
import type { ScriptVersions, Store } from '../storage/ports/store.ts'
import type { Engine } from '../tasks/engine.ts'
import type { Terminals } from '../terminals/terminals.ts'
import type { Tickets } from '../terminals/tickets.ts'
import type { Deliveries } from '../webhooks/deliveries.ts'
import type { WebhookEvents } from '../webhooks/events.ts'
import type { Judge } from '../webhooks/judge.ts'
import { Batches } from './logs/batches.ts'
import type { ReadersOfTasks } from './tasks/readers-of-tasks.ts'

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
export function publishTokenEnded({ facts, hints }: Pick<Context, 'facts' | 'hints'>, agentId: string): void {
  facts.publish('agentTokenEnded', { agentId })
  hints.publish('agentRevoked', { id: agentId })
}

export function notFound(what: string, id: number | string): RsmError {
  return new RsmError('not_found', `no such ${what}: ${id}`)
}
