import { spawn } from 'node:child_process'
import { constants, type FileHandle, open } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { RsmError } from '../core/errors.ts'
import { isDiskFull } from './durable.ts'

const attempts = 5
const retryMilliseconds = 100

/** What the holder of a lock writes into the lock file, for the message to the one who comes second. */
interface Holder {
  pid: number
  since: string
}

/**
 * Takes the exclusive lock on a file, or says who has it (`conflict`, naming `what`). The lock hangs on our open
 * descriptor: flock(1) sets it on the descriptor that it inherits, so any death of this process frees it, and closing
 * the handle does too. The file itself stays: removing it would let two hold "the" lock on different files.
 */
export async function lockFile(path: string, what: string): Promise<FileHandle> {
  const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW } = constants
  // Root locks directories of other users, and must not write where a link of theirs leads.
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
 * A process that forked just before the former holder let go has its descriptors, and with them the lock, until it
 * execs: what is held for longer than that is held in earnest.
 */
async function flockSoon(descriptor: number): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    if (await flock(descriptor)) return true
    if (attempt === attempts) return false
    await setTimeout(retryMilliseconds)
  }
}

/** True when the lock is ours, false when another holds it. */
async function flock(descriptor: number): Promise<boolean> {
  const child = spawn('flock', ['-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', descriptor] })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', resolve)
  }).catch((cause: unknown) => {
    throw new RsmError(
      'unavailable',
      'flock(1) does not start, and without it a data directory is not safe',
      {
        hint: 'install util-linux (or busybox) so that `flock` is in PATH',
        cause,
      },
    )
  })
  if (code === 0) return true
  if (code === 1) return false
  throw new RsmError('unavailable', `flock(1) failed with exit code ${code}: no lock can be taken here`, {
    hint: 'put the data directory on a local file system',
  })
}

/** A full disk must not keep a server from starting to read: then the second comer gets no name, but still no lock. */
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
