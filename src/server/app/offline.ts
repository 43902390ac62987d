import { constants } from 'node:fs'
import { access, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { Examination } from '../../core/checks/examine-host.ts'
import { RsmError } from '../../core/errors.ts'
import { Mutex } from '../../core/mutex.ts'
import type {
  ClockConfirmed,
  Compacted,
  OldData,
  PasswordReset,
  RestoreConfirmed,
} from '../../core/protocol/control.ts'
import { isoTime, systemClock } from '../../disk/clock.ts'
import { lockFile } from '../../disk/data-directory.ts'
import { sha256 } from '../../disk/digest.ts'
import { createLog, type Log } from '../../disk/log.ts'
import { serverVersion } from '../../disk/own-release.ts'
import { createPasswords } from '../access/passwords.ts'
import { confirmClock } from '../operations/confirm-clock.ts'
import { createRemoval, createRetention } from '../operations/housekeeping/retention.ts'
import { resetPassword } from '../operations/reset-password.ts'
import { createReadersOfTasks } from '../services/logs/readers.ts'
import { recordForSystem } from '../storage/audit-entry.ts'
import { makeBackup, type StoreSnapshot } from '../storage/backup/backup.ts'
import type { StoreKind } from '../storage/backup/format.ts'
import { lastWritten, openAgreedClock } from '../storage/files/agreed-clock.ts'
import { openFileAuditLog } from '../storage/files/audit-log.ts'
import { openOffline, readOffline, withOfflineStore } from '../storage/files/backup/offline.ts'
import { type Restored, restoreBackup } from '../storage/files/backup/restore.ts'
import { type Examined, examineData } from '../storage/files/checks/doctor.ts'
import { createCluster, tryExclusive } from '../storage/files/cluster.ts'
import { openExecutions } from '../storage/files/executions/executions.ts'
import { createFileOutputs } from '../storage/files/outputs/file-outputs.ts'
import { openFileRecordings } from '../storage/files/recordings.ts'
import { createFileResults } from '../storage/files/results.ts'
import { beginRun } from '../storage/files/runs.ts'
import { createDirectoryReader } from '../storage/files/streams/reader.ts'
import { createLocalFacts } from '../storage/local-facts.ts'
import { createLocalHints } from '../storage/local-hints.ts'
import { refuseElsewhere } from '../storage/moved-store.ts'
import type { Backup, BackupOptions } from '../storage/ports/maintenance.ts'
import { readStoreAddress } from '../storage/postgres/connection/address.ts'
import { createDatabase } from '../storage/postgres/connection/database.ts'
import { refusePooler } from '../storage/postgres/connection/session.ts'
import { openPostgresSnapshot } from '../storage/postgres/streams/store.ts'
import type { OnDamage } from '../storage/streams.ts'
import { createRestoreHold } from '../tasks/restore-hold.ts'
import { createTerminalRetention } from '../terminals/retention.ts'

export { checkBackup, writeCheckedFile } from '../storage/backup/unpack.ts'
export { restoreKeys } from '../storage/files/backup/restore.ts'

/** `rsm server` commands on a data directory without a running server; they lock it as a server does. */

interface StoreOptions {
  readonly store: string
  readonly storePasswordFile: string | undefined
  readonly insecureStore: boolean
}

interface Opened {
  readonly kind: StoreKind
  readonly path: string
  openSnapshot(damaged: OnDamage): Promise<StoreSnapshot>
  close(): Promise<void>
}

async function openDirectory(dataDir: string): Promise<Opened> {
  const directory = await openOffline(dataDir)
  const { path } = directory
  return {
    kind: 'directory',
    path,
    async openSnapshot(damaged) {
      const { manifest, tables } = await readOffline(path)
      const { storeId } = manifest
      const reader = createDirectoryReader({ path, tables, storeId, damaged })
      return { storeId, sequence: tables.sequence, reader, release: async () => undefined }
    },
    close: () => directory.release(),
  }
}

async function openDatabase(path: string, store: StoreOptions): Promise<Opened> {
  const address = readStoreAddress(store.store, store.storePasswordFile, store.insecureStore)
  const database = createDatabase(address, 'backup', createLog('WARN'))
  return {
    kind: 'postgresql',
    path,
    async openSnapshot(damaged) {
      await refusePooler(database)
      return openPostgresSnapshot(database, damaged)
    },
    close: () => database.close(),
  }
}

/** Makes a backup of a data directory, which stays locked until the backup has ended, or of a PostgreSQL store. */
export async function backupOffline(
  dataDir: string,
  keysDir: string | undefined,
  options: BackupOptions,
  store?: StoreOptions,
): Promise<Backup> {
  const opened = await (store ? openDatabase(dataDir, store) : openDirectory(dataDir))
  const backup = await makeBackup(
    {
      store: opened.kind,
      directory: opened.path,
      keysDirectory: keysDir ?? join(opened.path, 'keys'),
      version: serverVersion(),
      createdAt: isoTime(systemClock.now()),
      openSnapshot: (damaged) => opened.openSnapshot(damaged),
    },
    options,
  ).catch(async (error: unknown) => {
    await opened.close()
    throw error
  })
  const end = () => void opened.close()
  backup.made.then(end, end)
  return backup
}

/** Restores a backup as the data directory `path`; see storage/files/backup/restore.ts for its errors. */
export const restore = (
  source: AsyncIterable<Uint8Array>,
  path: string,
  passphrase: string | undefined,
): Promise<Restored> => restoreBackup(source, path, passphrase, systemClock.now())

export const compactOffline = (dataDir: string): Promise<Compacted> =>
  withOfflineStore(dataDir, createLog('WARN'), (store) => store.compact())

/** Sets a user's password; see operations/reset-password.ts for its errors. */
export const resetPasswordOffline = (
  dataDir: string,
  input: { username: string; password: string },
): Promise<PasswordReset> => {
  const log = createLog('WARN')
  return withOfflineStore(dataDir, log, async (store, directory) => {
    const audit = await openAudit(directory, store.storeId, log)
    try {
      const at = isoTime(systemClock.now())
      const { ended: _, ...reset } = await resetPassword(
        { store, passwords: createPasswords(), audit, at },
        input,
      )
      return reset
    } finally {
      await audit.close()
    }
  })
}

/** Lists data past its retention or size limit, and removes it unless `dryRun`. */
export const retentionOffline = (
  dataDir: string,
  limits: Pick<OldData, 'taskRetention' | 'recordingRetention' | 'maxOutputBytes'>,
  dryRun: boolean,
): Promise<OldData> => {
  const log = createLog('WARN')
  return withOfflineStore(dataDir, log, async (store, path) => {
    const written = await lastWritten(path)
    const audit = await openAudit(path, store.storeId, log)
    const agreed = await openAgreedClock(path, { store, audit, clock: systemClock, log, written })
    const outputs = createFileOutputs(join(path, 'tasks'), createLocalHints(), fail)
    try {
      const kept = { store, agreed, clock: systemClock, log }
      const { taskRetention: days, recordingRetention, maxOutputBytes } = limits
      const results = createFileResults(join(path, 'tasks'))
      const recordings = await openFileRecordings(join(path, 'terminals'))
      const retention = createRetention(
        { ...kept, outputs, results, readers: createReadersOfTasks(null) },
        { days, maxOutputBytes },
      )
      const oldTerminals = createTerminalRetention({ ...kept, recordings, days: recordingRetention })
      return await createRemoval({ retention, oldTerminals, dataLock: new Mutex(), tryExclusive })({ dryRun })
    } finally {
      await outputs.close()
      await agreed.close()
      await audit.close()
    }
  })
}

export const confirmClockOffline = (dataDir: string): Promise<ClockConfirmed> => {
  const log = createLog('WARN')
  return withOfflineStore(dataDir, log, async (store, path) => {
    const written = await lastWritten(path)
    const audit = await openAudit(path, store.storeId, log)
    const agreed = await openAgreedClock(path, { store, audit, clock: systemClock, log, written })
    try {
      return await confirmClock({ agreed, audit, clock: systemClock })
    } finally {
      await agreed.close()
      await audit.close()
    }
  })
}

/** Releases held work for the next server start, or cancels it. Errors: `conflict` if nothing is held. */
export const confirmRestoreOffline = (dataDir: string, cancelPending: boolean): Promise<RestoreConfirmed> => {
  const [clock, log] = [systemClock, createLog('WARN')]
  return withOfflineStore(dataDir, log, async (store, path) => {
    const audit = await openAudit(path, store.storeId, log)
    const hints = createLocalHints()
    const outputs = createFileOutputs(join(path, 'tasks'), hints, fail)
    const results = createFileResults(join(path, 'tasks'))
    const { ownership, links } = createCluster(clock)
    const executions = await openExecutions({ store, outputs, results, hints, links, ownership, clock, log })
    try {
      const member = await ownership.join('rsm server confirm-restore')
      await ownership.claim(member, await executions.running())
      const serverRuns = await beginRun(store, clock)
      const parts = { executions, store, serverRuns, member, clock, facts: createLocalFacts(), log }
      // No agent is linked to this process.
      const noAgents = { keys: { isAuthentic: () => false }, webhookEvents: { write() {} } }
      const restoreHold = createRestoreHold(
        { ...parts, ...noAgents, ended: () => {} },
        { get: () => undefined },
      )
      // As at a start: do not send again what may have run since the backup.
      await restoreHold.load()
      await restoreHold.settle()
      const { confirmed } = await restoreHold.confirm(cancelPending)
      await recordForSystem(audit, 'restore.confirm', { ...confirmed })
      return confirmed
    } finally {
      await executions.close()
      await outputs.close()
      await audit.close()
    }
  })
}

function fail(error: unknown): never {
  throw error
}

const openAudit = (path: string, storeId: string, log: Log) =>
  openFileAuditLog({
    directory: join(path, 'audit'),
    storeId,
    clock: systemClock,
    log,
    sha256,
    onFatal: fail,
  })

/** Examines a data directory; locks it meanwhile if no server runs and the lock file is accessible. */
export async function examine(
  dataDir: string,
  keysDir: string | undefined,
  rest: Pick<Examined, 'running' | 'host' | 'port'>,
): Promise<Examination> {
  await refuseElsewhere(dataDir, 'look at the log of the server, and at PostgreSQL with pg_amcheck')
  const lock = rest.running === null ? await lockAsItIs(dataDir) : null
  try {
    return await examineData({
      ...rest,
      path: dataDir,
      keysDirectory: keysDir ?? join(dataDir, 'keys'),
      locked: lock instanceof Error ? lock : null,
      version: serverVersion(),
      now: systemClock.now(),
    })
  } finally {
    if (lock !== null && !(lock instanceof Error)) await lock.close()
  }
}

/** Locks a data directory without repairing its permissions; returns an error if another process has the lock. */
async function lockAsItIs(dataDir: string): Promise<FileHandle | RsmError | null> {
  const path = join(dataDir, 'lock')
  const isThere = await access(path, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  )
  if (!isThere) return null
  return lockFile(path, `data directory ${dataDir}`).catch((error: unknown) => {
    if (error instanceof RsmError) return error
    throw error
  })
}
