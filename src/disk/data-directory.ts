import { chmodSync, type Stats, statSync } from 'node:fs'
import { chmod, readdir, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { RsmError } from '../core/errors.ts'
import { modeBits } from './files/attributes.ts'
import { lockFile } from './lock.ts'
import { makeDirectory } from './named-files.ts'

/** A directory that only this process uses, until `release` or the end of the process. */
export interface DataDirectory {
  readonly path: string
  release(): Promise<void>
}

const lockName = 'lock'

/**
 * Creates the directory if it is missing (mode 0700, or 0711 with `othersMayPass`), checks that it can hold
 * secrets, and locks it. With `rootMayRead`, root may open another user's directory, and leaves no file of
 * root in it.
 * @throws RsmError `conflict` if another process holds it; `invalid` if it is not a directory; `unavailable`
 * if it cannot be used as it is. Each has a hint (reliability F05, F06).
 */
export async function openDataDirectory(
  path: string,
  { rootMayRead = false, othersMayPass = false } = {},
): Promise<DataDirectory> {
  const directory = resolve(path)
  const what = `data directory ${directory}`
  try {
    const mode = othersMayPass ? 0o711 : 0o700
    if (othersMayPass) openParent(directory)
    makeDirectory(directory, mode)
    const owner = await checkPrivate(directory, what, { rootMayRead, mode })
    const handle = await lockFile(join(directory, lockName), what)
    if (rootMayRead && process.getuid?.() === 0) await handle.chown(owner.uid, owner.gid)
    let released: Promise<void> | null = null
    return { path: directory, release: () => (released ??= handle.close()) }
  } catch (error) {
    throw explain(error, what)
  }
}

/** /var/lib/rsm belongs to rsm; an earlier version or a umask may have closed it to other users. */
function openParent(directory: string): void {
  const parent = dirname(directory)
  if (parent !== '/var/lib/rsm') return
  makeDirectory(parent, 0o755)
  const { mode } = statSync(parent)
  if ((mode & 0o011) !== 0o011) chmodSync(parent, mode | 0o011)
}

async function checkPrivate(
  directory: string,
  what: string,
  { rootMayRead, mode }: { rootMayRead: boolean; mode: number },
): Promise<Stats> {
  const found = await stat(directory)
  if (!found.isDirectory()) throw notADirectory(what)
  const user = process.getuid?.() ?? found.uid
  if (found.uid !== user && !(rootMayRead && user === 0)) {
    throw new RsmError('unavailable', `${what} belongs to user ${found.uid}, but rsm runs as user ${user}`, {
      hint: `run rsm as that user, or: chown -R ${user} '${directory}'`,
    })
  }
  // Root inspecting another user's directory keeps its mode.
  const fit = rootMayRead ? (found.mode & 0o066) === 0 : (found.mode & 0o077) === (mode & 0o077)
  if (!fit) await setMode(directory, found, { what, mode })
  return found
}

/** Changes only a directory that clearly belongs to rsm: a chmod of, say, /tmp would break the machine. */
async function setMode(
  directory: string,
  found: Stats,
  { what, mode }: { what: string; mode: number },
): Promise<void> {
  const names = await readdir(directory)
  if (names.length === 0 || names.includes(lockName)) return chmod(directory, mode)
  if ((found.mode & 0o077) === 0) return
  const now = (found.mode & modeBits).toString(8)
  throw new RsmError('unavailable', `${what} is open to other users (mode ${now})`, {
    hint: `choose another directory; if only rsm uses this one: chmod ${mode.toString(8)} '${directory}'`,
  })
}

function notADirectory(what: string): RsmError {
  return new RsmError('invalid', `${what} is not a directory`, {
    hint: 'choose a directory, or remove the file',
  })
}

const sentences: Record<string, { says: string; hint: string }> = {
  EACCES: {
    says: 'cannot be written by this user',
    hint: 'change its owner, or choose another with --data-dir',
  },
  EPERM: {
    says: 'cannot be written by this user',
    hint: 'change its owner, or choose another with --data-dir',
  },
  EROFS: {
    says: 'is on a read-only file system',
    hint: 'mount it writable, or choose another with --data-dir',
  },
  ENOSPC: { says: 'is on a full disk', hint: 'free some space, or choose another with --data-dir' },
  EDQUOT: { says: 'is over its quota', hint: 'free some space, or choose another with --data-dir' },
  ENOENT: { says: 'cannot be created', hint: 'check the path, or choose another with --data-dir' },
}

function explain(error: unknown, what: string): unknown {
  if (error instanceof RsmError || !(error instanceof Error) || !('code' in error)) return error
  if (error.code === 'EEXIST' || error.code === 'ENOTDIR') return notADirectory(what)
  const sentence = sentences[String(error.code)]
  if (sentence === undefined) {
    return new RsmError('unavailable', `${what} cannot be opened: ${error.message}`, { cause: error })
  }
  return new RsmError('unavailable', `${what} ${sentence.says}`, { hint: sentence.hint, cause: error })
}
