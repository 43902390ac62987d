import { execFile } from 'node:child_process'
import { lchownSync, lstatSync, mkdirSync, statSync } from 'node:fs'
import { access, link, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { faultPoint } from '#fault-point'
import { RsmError } from '../../core/errors.ts'
import { openDataDirectory } from '../../disk/data-directory.ts'
import { replaceByNew, replaceDurably, syncDirectory } from '../../disk/durable.ts'
import { failedStore, keptStore } from '../../disk/upgrade-traces.ts'

const run = promisify(execFile)

/** Replaces an executable, and keeps the previous one. `target` is always one of the two, complete. */
export async function exchange(target: string, candidate: string): Promise<void> {
  await alsoNamed(target, formerOf(target))
  faultPoint('upgrade.former.after')
  await replaceDurably(candidate, target)
  faultPoint('upgrade.exchanged.after')
}

export async function goBack(target: string): Promise<void> {
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
export const keepStore = (dataDir: string): Promise<void> =>
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
export const bringStoreBack = (dataDir: string): Promise<void> =>
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
