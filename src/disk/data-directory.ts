import { spawn } from 'node:child_process'
import { chmodSync, type Stats, statSync } from 'node:fs'
import { chmod, constants, type FileHandle, open, readdir, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { RsmError } from '../core/errors.ts'
import { isDiskFull } from './durable.ts'
import { modeBits } from './files/attributes.ts'
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

const attempts = 5
const retryMilliseconds = 100

/** Content of the lock file, for the error message of a second process. */
interface Holder {
  pid: number
  since: string
}

/**
 * Takes an exclusive lock on a file. Error: `conflict`, with `what` and the holder.
 * flock(1) locks the descriptor that it inherits from us, so the end of this process or closing the handle
 * frees it. The file stays: if it were removed, two processes could lock different files of that name.
 */
export async function lockFile(path: string, what: string): Promise<FileHandle> {
  const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW } = constants
  // Root locks directories of other users, and must not write through their symlinks.
  const handle = await open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600)
  try {
    if (!(await flockSoon(handle.fd))) {
      const holder = parseHolder(await readAll(handle))
      const by = holder === null ? 'another process' : `pid ${holder.pid} since ${holder.since}`
      throw new RsmError('conflict', `${what} is in use by ${by}`, {
        hint: 'stop that process first, or choose another directory',
      })
    }
    await writeHolder(handle)
    return handle
  } catch (error) {
    await handle.close()
    throw error
  }
}

/**
 * Retries, because a process forked just before the previous holder released the lock has its descriptors
 * until it execs. A lock held for longer is in use.
 */
async function flockSoon(descriptor: number): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    if (await flock(descriptor)) return true
    if (attempt === attempts) return false
    await setTimeout(retryMilliseconds)
  }
}

/** True if we got the lock, false if another process holds it. */
async function flock(descriptor: number): Promise<boolean> {
  const child = spawn('flock', ['-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', descriptor] })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', resolve)
  }).catch((cause: unknown) => {
    throw new RsmError('unavailable', 'cannot run flock(1), which protects the data directory', {
      hint: 'install util-linux (or busybox) so that `flock` is in PATH',
      cause,
    })
  })
  if (code === 0) return true
  if (code === 1) return false
  throw new RsmError(
    'unavailable',
    `flock(1) failed with exit code ${code}: cannot lock the data directory`,
    {
      hint: 'put the data directory on a local file system',
    },
  )
}

/** Ignores a full disk, which must not prevent reading; a second process then sees no pid. */
async function writeHolder(handle: FileHandle): Promise<void> {
  const holder: Holder = { pid: process.pid, since: new Date().toISOString() }
  try {
    await handle.truncate(0)
    await handle.write(`${JSON.stringify(holder)}\n`)
  } catch (error) {
    if (!isDiskFull(error)) throw error
  }
}

async function readAll(handle: FileHandle): Promise<string> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(1024), 0, 1024, 0)
  return buffer.toString('utf8', 0, bytesRead)
}

function parseHolder(text: string): Holder | null {
  const found = /^\{"pid":(\d+),"since":"([^"]+)"\}\n$/.exec(text)
  return found === null ? null : { pid: Number(found[1]), since: String(found[2]) }
}
