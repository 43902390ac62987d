import { join } from 'node:path'
import { isoTime } from '../../../disk/clock.ts'
import { sha256 } from '../../../disk/digest.ts'
import { serverVersion } from '../../../disk/own-release.ts'
import { openReserve } from '../../../disk/reserve.ts'
import { makeBackup } from '../backup/backup.ts'
import { ascendFrom } from '../ids.ts'
import { loadKeys } from '../keys.ts'
import { createLocalHints } from '../local-hints.ts'
import { refuseElsewhere } from '../moved-store.ts'
import type { Data, DataOptions } from '../ports/data.ts'
import { lastWritten, openAgreedClock } from './agreed-clock.ts'
import { createNotedHead, openFileAuditLog } from './audit-log.ts'
import { createCluster } from './cluster.ts'
import { openDirectoryFiles } from './directory-files.ts'
import { openExecutions } from './executions/executions.ts'
import { createFileHistory } from './history.ts'
import { createFileOutputs } from './outputs/file-outputs.ts'
import { createPresence } from './presence.ts'
import { openFileRecordings } from './recordings.ts'
import { createFileResults } from './results.ts'
import { beginRun } from './runs.ts'
import { createScriptVersions } from './script-versions.ts'
import { createShortLived } from './short-lived.ts'
import { openJsonStore } from './store/store.ts'
import { createDirectoryReader } from './streams/reader.ts'
import { markUsed, refuseWithoutStore } from './used.ts'

/** `path`: the data directory, whose lock the caller holds; docs/inside/architecture.md lists its files. */
export async function openFileStore(path: string, options: DataOptions): Promise<Data> {
  const { metrics, heartbeatInterval, warnAfter, keysDirectory, newKeys, clock, log } = options
  const onFatal = (error: unknown) => options.onFatal(error)
  await refuseElsewhere(path, 'add --store, or name another directory with --data-dir')
  await refuseWithoutStore(path)
  const hints = createLocalHints()
  const written = await lastWritten(path)
  const reserve = await openReserve(path, { log: (level, message) => log[level](message) })
  const store = await openJsonStore({
    directory: join(path, 'store'),
    log: (level, message, fields) => log[level](fields ?? {}, message),
    onFatal,
    onSync: metrics.journalSynced,
    reserve,
  }).catch(async (error: unknown) => {
    await reserve?.close()
    throw error
  })
  for (const noun of ['tasks', 'terminals'] as const) {
    const [newest] = (await store.query(noun, { limit: 1, order: 'desc' })).items
    if (newest) ascendFrom(newest.id)
  }
  const { storeId } = store
  const serverRuns = await beginRun(store, clock)
  const at = isoTime(clock.now())
  const loaded = await loadKeys(keysDirectory, { store, newKeys, at }).catch(async (error: unknown) => {
    await store.close()
    await reserve?.close()
    throw error
  })
  const audit = await openFileAuditLog({
    directory: join(path, 'audit'),
    storeId,
    clock,
    log,
    sha256,
    onFatal,
    reserve,
  })
  const presence = await createPresence({
    path: join(path, 'presence.json'),
    heartbeatInterval,
    version: serverVersion(),
    warnAfter,
    hints,
    clock,
    log,
  })
  for (const { id, agent } of (await store.query('hosts')).items)
    if (agent?.tokenHash === null) presence.revoked(id)
  const cluster = createCluster(clock)
  const tasks = join(path, 'tasks')
  const history = createFileHistory({
    directory: join(path, 'metrics'),
    isFull: () => reserve?.isGivenUp === true,
    clock,
    log,
  })
  const outputs = createFileOutputs(tasks, hints, onFatal, metrics.outputSynced, reserve?.disk)
  const results = createFileResults(tasks)
  const executions = await openExecutions({ ...cluster, store, outputs, results, hints, clock, log })
  const agreed = await openAgreedClock(path, { store, audit, clock, log, written })
  return {
    ...cluster,
    clock,
    store,
    serverRuns,
    hints,
    shortLived: createShortLived(clock),
    audit,
    notedHead: createNotedHead(join(path, 'audit.head'), audit),
    keys: loaded.keys,
    replacedKeys: loaded.replaced,
    executions,
    presence,
    history,
    outputs,
    results,
    versions: createScriptVersions(join(path, 'scripts')),
    recordings: await openFileRecordings(join(path, 'terminals'), reserve?.disk),
    files: await openDirectoryFiles(join(path, 'files')),
    agreed,
    maintenance: {
      backup: (options) =>
        makeBackup(
          {
            store: 'directory',
            directory: path,
            keysDirectory,
            version: serverVersion(),
            createdAt: isoTime(clock.now()),
            openSnapshot: async (damaged) => {
              const pinned = await store.pin()
              const { tables } = pinned
              const reader = createDirectoryReader({ path, tables, storeId, damaged })
              async function* identity() {
                await pinned.check()
                yield* reader.identity()
              }
              return {
                storeId,
                sequence: tables.sequence,
                reader: { ...reader, identity },
                release: () => pinned.release(),
              }
            },
          },
          options,
        ),
      compact: () => store.compact(),
    },
    waitingWrites: () => store.queueLength,
    markUsed: () => markUsed(path, storeId, log),
    async close() {
      await executions.close()
      await outputs.close()
      await presence.close()
      await history.close()
      await agreed.close()
      await audit.close()
      await store.close()
      await reserve?.close()
    },
  }
}
