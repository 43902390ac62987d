import { spawn } from 'node:child_process'
import { constants, type FileHandle, open } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { RsmError } from '../core/errors.ts'
import { isDiskFull } from './durable.ts'

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
