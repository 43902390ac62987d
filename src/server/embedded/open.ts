import { join } from 'node:path'
import { AgreedClock } from '../../disk/agreed-clock.ts'
import { type AuditLog, openAuditLog } from '../audit/audit-log.ts'
import { type Clock, isoTime } from '../clock.ts'
import { sha256 } from '../digest.ts'
import { ascendFrom } from '../ids.ts'
import type { Keys } from '../keys.ts'
import type { Log } from '../log.ts'
import type { ServerMetrics } from '../metrics/metrics.ts'
import { beginRun, type Runs } from '../runs.ts'
import type { Hints } from '../seams/hints.ts'
import type { History } from '../seams/history.ts'
import type { Outputs } from '../seams/outputs.ts'
import type { Presence } from '../seams/presence.ts'
import type { Results } from '../seams/results.ts'
import type { ScriptVersions } from '../seams/script-versions.ts'
import { lastWritten, openAgreedClock } from './agreed-clock.ts'
import { createHints } from './hints.ts'
import { createFileHistory } from './history/file-history.ts'
import { loadKeys, type ReplacedKeys } from './key-files.ts'
import { createFileOutputs } from './outputs/file-outputs.ts'
import { createPresence } from './presence/memory-presence.ts'
import { createFileResults } from './results.ts'
import { createScriptVersions } from './script-versions.ts'
import { type JsonStore, openJsonStore } from './store/store.ts'
import { refuseWithoutStore } from './used.ts'

/** What the server keeps in its data directory; docs/architecture.md has the table of the files. */
export interface Data {
  store: JsonStore
  hints: Hints
  serverRuns: Runs
  audit: AuditLog
  keys: Keys
  /** Which this start has replaced. */
  replacedKeys: ReplacedKeys | null
  presence: Presence
  history: History
  outputs: Outputs
  results: Results
  versions: ScriptVersions
  agreed: AgreedClock
}

export interface DataOptions {
  /** Seconds. */
  heartbeatInterval: number
  /** Seconds of high cpu or memory until a host is WARNING. */
  warnAfter?: number | undefined
  metrics: Pick<ServerMetrics, 'journalSynced' | 'outputSynced'>
  /** Whether keys that are missing or damaged are replaced. */
  newKeys: boolean
  clock: Clock
  log: Log
  /** The disk can't be trusted any more. */
  onFatal(error: unknown): void
}

/** Opens all of it in the data directory at `path`, whose lock the caller holds. Whoever opens it closes its parts. */
export async function openData(path: string, options: DataOptions): Promise<Data> {
  const { metrics, heartbeatInterval, warnAfter, newKeys, clock, log } = options
  const onFatal = (error: unknown) => options.onFatal(error)
  await refuseWithoutStore(path)
  const hints = createHints()
  const written = await lastWritten(path)
  const store = await openJsonStore({
    directory: join(path, 'store'),
    log: (level, message, fields) => log[level](fields ?? {}, message),
    onFatal,
    onSync: metrics.journalSynced,
  })
  for (const noun of ['tasks', 'terminals'] as const) {
    const [newest] = (await store.page(noun, { offset: 0, limit: 1, order: 'desc' })).items
    if (newest) ascendFrom(newest.id)
  }
  const { storeId } = store
  const serverRuns = await beginRun(store, clock)
  const at = isoTime(clock.now())
  const loaded = await loadKeys(join(path, 'keys'), { store, newKeys, at }).catch(async (error: unknown) => {
    await store.close()
    throw error
  })
  const audit = await openAuditLog({ directory: join(path, 'audit'), storeId, clock, log, sha256, onFatal })
  const presence = await createPresence({
    path: join(path, 'presence.json'),
    heartbeatInterval,
    warnAfter,
    hints,
    clock,
    log,
  })
  for (const { id, agent } of await store.all('hosts')) if (agent?.tokenHash === null) presence.revoked(id)
  const tasks = join(path, 'tasks')
  return {
    store,
    hints,
    serverRuns,
    audit,
    keys: loaded.keys,
    replacedKeys: loaded.replaced,
    presence,
    history: createFileHistory({ directory: join(path, 'metrics'), clock, log }),
    outputs: createFileOutputs(tasks, hints, onFatal, metrics.outputSynced),
    results: createFileResults(tasks),
    versions: createScriptVersions(join(path, 'scripts')),
    agreed: await openAgreedClock(path, { store, audit, clock, log, written }),
  }
}
