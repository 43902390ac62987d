import type { AgreedClock } from '../../disk/agreed-clock.ts'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { AuditLog, NotedHead } from './audit-log.ts'
import type { Executions } from './executions.ts'
import type { Files } from './files.ts'
import type { Hints } from './hints.ts'
import type { History } from './history.ts'
import type { Keep } from './keep.ts'
import type { Keys, ReplacedKeys } from './keys.ts'
import type { Links } from './links.ts'
import type { Outputs } from './outputs.ts'
import type { Ownership } from './ownership.ts'
import type { Presence } from './presence.ts'
import type { Recordings } from './recordings.ts'
import type { Relay } from './relay.ts'
import type { Results } from './results.ts'
import type { Runs } from './runs.ts'
import type { ScriptVersions } from './script-versions.ts'
import type { Shared } from './shared.ts'
import type { ShortLived } from './short-lived.ts'
import type { Store } from './store.ts'

/** All that a server stands on, as one start opens it. */
export interface Data {
  /** What all times in it come from. */
  clock: Clock
  /** Null where this server has the store to itself. */
  shared: Shared | null
  store: Store
  serverRuns: Runs
  hints: Hints
  shortLived: ShortLived
  audit: AuditLog
  notedHead: NotedHead
  keys: Keys
  /** What this start has replaced. */
  replacedKeys: ReplacedKeys | null
  links: Links
  ownership: Ownership
  relay: Relay
  executions: Executions
  presence: Presence
  history: History
  outputs: Outputs
  results: Results
  versions: ScriptVersions
  recordings: Recordings
  files: Files
  agreed: AgreedClock
  keep: Keep
  /** Transactions that wait to become durable. */
  waitingWrites(): number
  /** Notes outside the store that this store has a user. From then on, a start without the store is refused. */
  markUsed(): Promise<void>
  /** Runs `work` unless another server of the store runs such work just now; then false. */
  alone(work: () => Promise<void>): Promise<boolean>
  /** Runs `work` while no other server of the store runs such work: it waits for its turn. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  /** Waits for what is under way, and closes all of it. */
  close(): Promise<void>
}

export interface DataOptions {
  /** Seconds. */
  heartbeatInterval: number
  /** Seconds of high cpu or memory until a host is WARNING. */
  warnAfter?: number | undefined
  metrics: {
    readonly journalSynced: (seconds: number) => void
    readonly outputSynced: (seconds: number, bytes: number) => void
  }
  /** Where the signing key and the sealing key are. */
  keysDirectory: string
  /** Whether keys that are missing or damaged are replaced. */
  newKeys: boolean
  clock: Clock
  log: Log
  /** The disk can't be trusted any more. */
  onFatal(error: unknown): void
}

/** Opens what a server stands on. `path`: its data directory, whose lock the caller holds. */
export type OpenData = (path: string, options: DataOptions) => Promise<Data>
