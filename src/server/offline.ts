import { constants } from 'node:fs'
import { access, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { Examination } from '../core/checks/examine-host.ts'
import { RsmError } from '../core/errors.ts'
import { Mutex } from '../core/mutex.ts'
import type {
  ClockConfirmed,
  Compacted,
  OldData,
  PasswordReset,
  RestoreConfirmed,
} from '../core/protocol/control.ts'
import { lockFile } from '../disk/lock.ts'
import { createPasswords } from './access/passwords.ts'
import { recordForSystem } from './audit/actor.ts'
import { isoTime, systemClock } from './clock.ts'
import { sha256 } from './digest.ts'
import { refuseElsewhere } from './elsewhere.ts'
import { lastWritten, openAgreedClock } from './embedded/agreed-clock.ts'
import { openFileAuditLog } from './embedded/audit/file-audit-log.ts'
import { alone, createCluster } from './embedded/cluster.ts'
import { type Examined, examineData } from './embedded/doctor/doctor.ts'
import { openExecutions } from './embedded/executions/executions.ts'
import { holdAlone, openAlone, withStoreAlone } from './embedded/keep/alone.ts'
import { makeBackup } from './embedded/keep/backup.ts'
import { markRestored } from './embedded/keep/mark-restored.ts'
import { type Restored, restoreBackup } from './embedded/keep/restore.ts'
import { createFileOutputs } from './embedded/outputs/file-outputs.ts'
import { openFileRecordings } from './embedded/recordings/file-recordings.ts'
import { createFileResults } from './embedded/results.ts'
import { beginRun } from './embedded/runs.ts'
import { createHeld } from './engine/held.ts'
import { createReadersOfTasks } from './housekeeping/readers-of-tasks.ts'
import { createRetention } from './housekeeping/retention.ts'
import { confirmClock } from './keep/confirm-clock.ts'
import { createRemoval } from './keep/remove-old.ts'
import { resetPassword } from './keep/reset-password.ts'
import { createLocalFacts } from './local-facts.ts'
import { createLocalHints } from './local-hints.ts'
import { createLog, type Log } from './log.ts'
import type { Backup, BackupOptions } from './seams/keep.ts'
import { createTerminalRetention } from './terminals/retention.ts'
import { serverVersion } from './version.ts'

export { checkBackup, writeCheckedFile } from './embedded/keep/checked-file.ts'
export { restoreKeys } from './embedded/keep/restore.ts'

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

/** Brings a backup back as the data directory `path`; see embedded/keep/restore.ts for its errors. */
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

/** A new password for a user; see keep/reset-password.ts for its errors. */
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
      const held = createHeld({ ...parts, ...noAgents, ended: () => {} }, { get: () => undefined })
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
