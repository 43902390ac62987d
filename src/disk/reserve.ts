import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'
import { constants, ftruncateSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../core/errors.ts'
import { type Disk, isDiskFull, realDisk, roomOf, writeWhole } from './durable.ts'

const mostBytes = 4 * 1024 * 1024
/** A disk smaller than a hundred times this has no reserve. */
const leastBytes = 256 * 1024
/** Logged when a full disk has room again. */
export const roomAgain = 'the disk has room again: accepting writes'
/** Bytes below which a disk counts as full. */
const nothing = 64 * 1024

const reserveUse = new AsyncLocalStorage<true>()
/** Exhausted reserves of this process: AsyncLocalStorage slows all calls and is needed only then. */
let givenUpNow = 0

/** Lets the writes of `work` use the room of the reserve. */
export const withReserve = <T>(work: () => T): T => (givenUpNow === 0 ? work() : reserveUse.run(true, work))

/** Space kept for a full disk: a file that is emptied when no other space is left. */
export interface Reserve {
  /** Error for writes while the reserve is in use; null within `withReserve`. */
  readonly refusal: RsmError | null
  readonly isGivenUp: boolean
  /** For logs that must not use the reserve: this disk is full while the reserve is in use. */
  readonly disk: Disk
  giveUp(cause: unknown): void
  /** Calls `listener` each time the reserve is complete again. */
  onRestored(listener: () => void): void
  close(): Promise<void>
}

interface ReserveOptions {
  readonly log: (level: 'info' | 'error', message: string) => void
  /** Milliseconds between two checks of the disk. */
  readonly checkInterval?: number | undefined
}

const fullDisk = (): Error => Object.assign(new Error('ENOSPC: only the reserve is left'), { code: 'ENOSPC' })

/** Opens the reserve of a data directory; null if the disk is too small for one, or its size is unknown. */
export async function openReserve(
  directory: string,
  { log, checkInterval = 1000 }: ReserveOptions,
): Promise<Reserve | null> {
  const bytes = Math.min(mostBytes, Math.floor(((await roomOf(directory))?.size ?? 0) / 100))
  if (bytes < leastBytes) return null
  const handle = await open(join(directory, 'reserve'), constants.O_RDWR | constants.O_CREAT, 0o600)
  let givenUp: RsmError | null = null
  const listeners: (() => void)[] = []

  /** Random, because a compressing file system would keep no room for zeros. */
  async function fill(): Promise<boolean> {
    try {
      await writeWhole(handle.fd, randomBytes(bytes), 0)
      return true
    } catch (error) {
      await handle.truncate(0)
      if (isDiskFull(error)) return false
      throw error
    }
  }

  function giveUp(cause: unknown): void {
    if (givenUp !== null) return
    givenUpNow++
    givenUp = new RsmError(
      'unavailable',
      'the data directory is full: until there is room, only logins and calls that end, disable or remove something are accepted',
      { cause, retryAfter: 5 },
    )
    try {
      ftruncateSync(handle.fd, 0)
    } catch (error) {
      // A copy-on-write file system may need space to free some.
      log('error', `cannot free the disk reserve: ${String(error)}`)
    }
    log('error', 'the disk is full: the reserve is in use, new work is refused')
  }

  async function check(): Promise<void> {
    const room = await roomOf(directory)
    if (room === null) return
    if (givenUp === null) {
      if (room.available < nothing) giveUp(fullDisk())
    } else if (room.available >= 2 * bytes && (await fill())) {
      givenUp = null
      givenUpNow--
      log('info', roomAgain)
      for (const restored of listeners) restored()
    }
  }

  if ((await handle.stat()).size < bytes && !(await fill())) giveUp(fullDisk())
  let checking: Promise<void> | null = null
  const timer = setInterval(() => {
    checking ??= check()
      .catch((error: unknown) => log('error', `the disk reserve failed: ${String(error)}`))
      .finally(() => {
        checking = null
      })
  }, checkInterval).unref()

  return {
    get refusal() {
      return givenUp === null || reserveUse.getStore() === true ? null : givenUp
    },
    get isGivenUp() {
      return givenUp !== null
    },
    disk: Object.assign(Object.create(realDisk) as Disk, {
      write: (...args: Parameters<Disk['write']>) =>
        givenUp === null ? realDisk.write(...args) : Promise.reject(fullDisk()),
    }),
    giveUp,
    onRestored: (listener) => void listeners.push(listener),
    async close() {
      clearInterval(timer)
      await checking
      if (givenUp !== null) givenUpNow--
      await handle.close()
    },
  }
}
