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
import { sha256 } from '../../disk/digest.ts'
import { lockFile } from '../../disk/lock.ts'
import { createLog, type Log } from '../../disk/log.ts'
import { serverVersion } from '../../disk/own-release.ts'
import { createPasswords } from '../access/passwords.ts'
import { confirmClock } from '../operations/confirm-clock.ts'
import { createRemoval, createRetention } from '../operations/housekeeping/retention.ts'
import { resetPassword } from '../operations/reset-password.ts'
import { createReadersOfTasks } from '../services/tasks/readers-of-tasks.ts'
import { recordForSystem } from '../storage/audit/entry.ts'
import { lastWritten, openAgreedClock } from '../storage/files/agreed-clock.ts'
import { openFileAuditLog } from '../storage/files/audit/file-audit-log.ts'
import { holdAlone, openAlone, withStoreAlone } from '../storage/files/backup/alone.ts'
import { makeBackup } from '../storage/files/backup/backup.ts'
import { markRestored } from '../storage/files/backup/mark-restored.ts'
import { type Restored, restoreBackup } from '../storage/files/backup/restore.ts'
import { type Examined, examineData } from '../storage/files/checks/doctor.ts'
import { alone, createCluster } from '../storage/files/cluster.ts'
import { openExecutions } from '../storage/files/executions/executions.ts'
import { createFileOutputs } from '../storage/files/outputs/file-outputs.ts'
import { openFileRecordings } from '../storage/files/recordings/file-recordings.ts'
import { createFileResults } from '../storage/files/results.ts'
import { beginRun } from '../storage/files/runs.ts'
import { createLocalFacts } from '../storage/local-facts.ts'
import { createLocalHints } from '../storage/local-hints.ts'
import { refuseElsewhere } from '../storage/moved-store.ts'
import type { Backup, BackupOptions } from '../storage/ports/keep.ts'
import { createRestoreHold } from '../tasks/restore-hold.ts'
import { createTerminalRetention } from '../terminals/retention.ts'

export { checkBackup, writeCheckedFile } from '../storage/files/backup/checked-file.ts'
export { restoreKeys } from '../storage/files/backup/restore.ts'

/** What `rsm server` commands do themselves on a data directory where no server runs: they take its lock, as a server does. */

/** A backup of a data directory; it is locked until the backup has ended. */
export async function backupAlone(
  dataDir: string,
  keysDir: string | undefined,
  options: BackupOptions,
): Promise<Backup> {
  const directory = await openAlone(dataDir)
  const backup = await makeBackup(
    {
      directory: directory.path,
      keysDirectory: keysDir ?? join(directory.path, 'keys'),
      version: serverVersion(),
      createdAt: isoTime(systemClock.now()),
      hold: () => holdAlone(directory.path),
    },
    options,
  ).catch(async (error: unknown) => {
    await directory.release()
    throw error
  })
  const release = () => void directory.release()
  backup.made.then(release, release)
  return backup
}

/** Brings a backup back as the data directory `path`; see storage/files/backup/restore.ts for its errors. */
export async function restore(
  source: AsyncIterable<Uint8Array>,
  path: string,
  passphrase: string | undefined,
): Promise<Restored> {
  const log = createLog('WARN')
  return restoreBackup(source, path, {
    passphrase,
    finish: (directory, header) => markRestored(directory, header, { clock: systemClock, log }),
  })
}

/** Writes the store of a data directory anew. */
export const compactAlone = (dataDir: string): Promise<Compacted> =>
  withStoreAlone(dataDir, createLog('WARN'), (store) => store.compact())

/** A new password for a user; see operations/reset-password.ts for its errors. */
export const resetPasswordAlone = (
  dataDir: string,
  input: { username: string; password: string },
): Promise<PasswordReset> => {
  const log = createLog('WARN')
  return withStoreAlone(dataDir, log, async (store, directory) => {
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

/** Says what is past its time or too much, and removes it unless that is only asked. */
export const retentionAlone = (
  dataDir: string,
  limits: Pick<OldData, 'taskRetention' | 'recordingRetention' | 'maxOutputBytes'>,
  dryRun: boolean,
): Promise<OldData> => {
  const log = createLog('WARN')
  return withStoreAlone(dataDir, log, async (store, path) => {
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
      return await createRemoval({ retention, oldTerminals, dataLock: new Mutex(), alone })({ dryRun })
    } finally {
      await outputs.close()
      await agreed.close()
      await audit.close()
    }
  })
}

/** Says that the clock is right. */
export const confirmClockAlone = (dataDir: string): Promise<ClockConfirmed> => {
  const log = createLog('WARN')
  return withStoreAlone(dataDir, log, async (store, path) => {
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

/** Lets what is held start with the next start of the server, or cancels it. Errors: `conflict` where nothing is held. */
export const confirmRestoreAlone = (dataDir: string, cancelPending: boolean): Promise<RestoreConfirmed> => {
  const [clock, log] = [systemClock, createLog('WARN')]
  return withStoreAlone(dataDir, log, async (store, path) => {
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
      // No agent speaks to this process.
      const noAgents = { keys: { isAuthentic: () => false }, webhookEvents: { write() {} } }
      const held = createRestoreHold({ ...parts, ...noAgents, ended: () => {} }, { get: () => undefined })
      // As a start does: what may have run since the backup is not sent again.
      await held.load()
      await held.settle()
      const { confirmed } = await held.confirm(cancelPending)
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

/** What is the matter with a data directory; where no server runs it is locked meanwhile, as far as that is possible. */
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

/** The lock of a data directory as it is found: `openDataDirectory` would mend its rights. An error: another has it. */
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
