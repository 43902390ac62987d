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
import type { ShortLived } from './short-lived.ts'
import type { ScriptVersions, Store } from './store.ts'
import type { Recordings } from './terminals.ts'

export interface Data extends Cluster {
  clock: Clock
  store: Store
  serverRuns: Runs
  hints: Hints
  shortLived: ShortLived
  audit: AuditLog
  notedHead: NotedHead
  keys: Keys
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
  /** Number of transactions that wait to become durable. */
  waitingWrites(): number
  /** Notes outside the store that it has a user. From then on, a start without the store is refused. */
  markUsed(): Promise<void>
  /** Waits for pending work and closes everything. */
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
  keysDirectory: string
  newKeys: boolean
  clock: Clock
  log: Log
  /** The disk cannot be trusted any more. */
  onFatal(error: unknown): void
}

/** `path`: the data directory, whose lock the caller holds. */
export type OpenData = (path: string, options: DataOptions) => Promise<Data>
