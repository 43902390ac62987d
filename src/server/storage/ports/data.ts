import type { AgreedClock } from '../../../disk/agreed-clock.ts'
import type { Clock } from '../../../disk/clock.ts'
import type { Log } from '../../../disk/log.ts'
import type { AuditLog, NotedHead } from './audit-log.ts'
import type { Cluster, Runs } from './cluster.ts'
import type { Executions } from './executions.ts'
import type { Files } from './files.ts'
import type { Hints } from './hints.ts'
import type { Keys, ReplacedKeys } from './keys.ts'
import type { StoreMaintenance } from './maintenance.ts'
import type { Outputs, Results } from './outputs.ts'
import type { History, Presence } from './presence.ts'
import type { Recordings } from './recordings.ts'
import type { ShortLived } from './short-lived.ts'
import type { ScriptVersions, Store } from './store.ts'

/** All that a server stands on, as one start opens it. */
export interface Data extends Cluster {
  /** What all times in it come from. */
  clock: Clock
  store: Store
  serverRuns: Runs
  hints: Hints
  shortLived: ShortLived
  audit: AuditLog
  notedHead: NotedHead
  keys: Keys
  /** What this start has replaced. */
  replacedKeys: ReplacedKeys | null
  executions: Executions
  presence: Presence
  history: History
  outputs: Outputs
  results: Results
  versions: ScriptVersions
  recordings: Recordings
  files: Files
  agreed: AgreedClock
  maintenance: StoreMaintenance
  /** Transactions that wait to become durable. */
  waitingWrites(): number
  /** Notes outside the store that this store has a user. From then on, a start without the store is refused. */
  markUsed(): Promise<void>
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
