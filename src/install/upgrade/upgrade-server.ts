import { execFile } from 'node:child_process'
import { existsSync, lchownSync, lstatSync, mkdirSync, statSync } from 'node:fs'
import { access, link, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { faultPoint } from '#fault-point'
import { RsmError } from '../../core/errors.ts'
import type { ProcessStatus, UpgradeNote } from '../../core/protocol/control.ts'
import { openDataDirectory } from '../../disk/data-directory.ts'
import { replaceByNew, replaceDurably, syncDirectory } from '../../disk/durable.ts'
import { endUpgrade, failedStore, keptStore, recordUpgrade } from '../../disk/upgrade-traces.ts'
import type { Candidate } from './candidate.ts'
import type { Operated } from './running-server.ts'

const run = promisify(execFile)
/** Milliseconds until a started server must be ready. */
const readyWithin = 60_000
const pollInterval = 250

export interface Upgrade {
  readonly dataDir: string
  readonly target: string
  readonly from: string
  readonly candidate: Candidate
  readonly server: Operated
  /** Status of the running server; rejects without one. */
  readonly status: () => Promise<Pick<ProcessStatus, 'pid' | 'version' | 'ready'>>
  readonly note: (note: UpgradeNote) => Promise<unknown>
  readonly say: (step: string) => void
}

/**
 * Replaces the executable of a running server: stops it, keeps the store, exchanges the executables, starts
 * it, and rolls back if it does not become ready. Errors: `unavailable`, with what runs now.
 */
export async function upgradeServer(upgrade: Upgrade): Promise<void> {
  const { dataDir, target, from, candidate, server, say } = upgrade
  const { pid: previousPid } = await upgrade.status()
  const { version: to, sha256 } = candidate
  await upgrade.note({ from, to, sha256, reverted: null })
  await recordStart(upgrade)
  say(`stopping rsm ${from} (${server.by})`)
  await server.stop()
  try {
    await keepStore(dataDir)
    await exchange(target, candidate.path)
  } catch (error) {
    // Nothing has been exchanged.
    if ((await startAndWait(upgrade, previousPid)) === null) {
      await endUpgrade(dataDir)
      await upgrade.note({ from, to, sha256, reverted: (error as Error).message })
    }
    throw error
  }
  say(`starting rsm ${to}`)
  const why = await startAndWait(upgrade, previousPid)
  if (why !== null) await revert(upgrade, previousPid, why)
  // Older servers do not end the upgrade themselves.
  await endUpgrade(dataDir)
  const { version } = await upgrade.status()
  if (version === to) return
  await goBack(target)
  const reverted = `the server started as rsm ${version}: it does not run from ${target}`
  await upgrade.note({ from, to, sha256, reverted })
  throw new RsmError('unavailable', `${reverted}; the previous executable is restored`, {
    hint: 'name the executable that it runs from: --executable FILE',
  })
}

/** Recorded so that an interrupted upgrade can be reported. */
async function recordStart({ dataDir, target, from, candidate, server }: Upgrade): Promise<void> {
  const { ino } = await stat(candidate.path)
  await recordUpgrade(dataDir, {
    from,
    to: candidate.version,
    executable: target,
    inode: ino,
    start: server.startLine,
    pid: process.pid,
    startedAt: new Date().toISOString(),
  })
}

/** Waits until a server is ready; resolves to the reason if it is not, or null. */
async function whyNotReady(
  { status }: Upgrade,
  previousPid: number,
  gone: Promise<string>,
): Promise<string | null> {
  let end: string | null = null
  void gone.then((why) => {
    end = why
  })
  for (const until = Date.now() + readyWithin; Date.now() < until; await sleep(pollInterval)) {
    const now = await status().catch(() => null)
    // An older server does not report readiness: it is ready once it answers.
    if (now !== null && now.pid !== previousPid && now.ready !== false) return null
    if (end !== null) return end
  }
  return `it was not ready within ${readyWithin / 1000} s`
}

async function startAndWait(upgrade: Upgrade, previousPid: number): Promise<string | null> {
  try {
    const { ended } = await upgrade.server.start()
    return await whyNotReady(upgrade, previousPid, ended)
  } catch (error) {
    return (error as Error).message
  }
}

/** Restores the previous version, and its store unless the new one accepted requests: it acknowledged their data. */
async function revert(upgrade: Upgrade, previousPid: number, why: string): Promise<never> {
  const { dataDir, target, from, candidate, server, say } = upgrade
  const failed = `rsm ${candidate.version} did not become ready: ${why}`
  say(`${failed}; going back to ${from}`)
  await server.stop()
  // A server drops the kept store before its first request. It has ended, so this is final.
  const isKept = existsSync(keptStore(dataDir))
  await goBack(target)
  if (isKept) await bringStoreBack(dataDir)
  const stillNot = await startAndWait(upgrade, previousPid)
  const data = isKept ? 'its previous data' : `the data of ${candidate.version}, which had accepted requests`
  if (stillNot !== null)
    throw new RsmError(
      'unavailable',
      `${failed}; rsm ${from} is restored, with ${data}, but not ready: ${stillNot}`,
      { hint: 'see the server log' },
    )
  await endUpgrade(dataDir)
  const { version: to, sha256 } = candidate
  await upgrade.note({ from, to, sha256, reverted: why })
  throw new RsmError('unavailable', `${failed}; rsm ${from} runs again, with ${data}`, {
    hint: 'see the server log for the cause',
  })
}

/** Replaces an executable, and keeps the previous one. `target` is always one of the two, complete. */
async function exchange(target: string, candidate: string): Promise<void> {
  await alsoNamed(target, formerOf(target))
  faultPoint('upgrade.former.after')
  await replaceDurably(candidate, target)
  faultPoint('upgrade.exchanged.after')
}

async function goBack(target: string): Promise<void> {
  await alsoNamed(formerOf(target), target)
  faultPoint('upgrade.executableBack.after')
}

export const formerOf = (target: string): string => `${target}.former`

/** Links a file under another name, replacing what had it. */
const alsoNamed = (path: string, name: string): Promise<void> =>
  replaceByNew(name, (temporary) => link(path, temporary))

/**
 * Keeps the store of a stopped server, because the previous version may be unable to read what a new one
 * writes. Errors: `unavailable` if there is no room.
 */
const keepStore = (dataDir: string): Promise<void> =>
  locked(dataDir, async () => {
    const kept = keptStore(dataDir)
    await rm(kept, { recursive: true, force: true })
    try {
      await run('cp', ['-a', join(dataDir, 'store'), kept])
      faultPoint('upgrade.kept.after')
    } catch (cause) {
      await rm(kept, { recursive: true, force: true })
      const { stderr = '' } = cause as { stderr?: string }
      throw new RsmError('unavailable', `cannot copy the store: ${stderr.trim().split('\n').at(-1)}`, {
        hint: 'nothing was changed; make room on the disk of the data directory',
        cause,
      })
    }
  })

/** Restores the kept store. Fails if it is gone, because a ready version's acknowledged data must stay. */
const bringStoreBack = (dataDir: string): Promise<void> =>
  locked(dataDir, async () => {
    const [store, kept, failed] = [join(dataDir, 'store'), keptStore(dataDir), failedStore(dataDir)]
    await access(kept)
    await rm(failed, { recursive: true, force: true })
    await rename(store, failed)
    await rename(kept, store)
    await syncDirectory(dataDir)
    faultPoint('upgrade.storeBack.after')
    await rm(failed, { recursive: true, force: true })
  })

/** Runs `work` while no server can start on the directory. */
async function locked<T>(dataDir: string, work: () => Promise<T>): Promise<T> {
  const directory = await openDataDirectory(dataDir, { rootMayRead: true })
  try {
    return await work()
  } finally {
    await directory.release()
  }
}

/**
 * Creates `backups/` in a data directory, with the same owner. Errors: `conflict` for a link, because root
 * would write where the user of the server points it, and hand that over.
 */
export function backupsIn(dataDir: string): string {
  const path = join(dataDir, 'backups')
  const { uid, gid } = statSync(dataDir)
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) mkdirSync(path, { mode: 0o700 })
  if (!lstatSync(path).isDirectory())
    throw new RsmError('conflict', `${path} is a link or a file, not a directory`, {
      hint: 'nothing was changed; move it away, or use --backup FILE',
    })
  lchownSync(path, uid, gid)
  return path
}
