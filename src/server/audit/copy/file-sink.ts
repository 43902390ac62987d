import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { AuditHead } from '../../../core/audit.ts'
import { RsmError } from '../../../core/errors.ts'
import { writeWhole } from '../../../disk/disk.ts'
import { syncDirectory } from '../../../disk/durable.ts'
import { whyUnwritable } from '../../../disk/unwritable.ts'
import { headOf } from './head-of.ts'
import type { Sink } from './sink.ts'

/** Read of the end of a file, in bytes: more than two of the longest lines. */
const endBytes = 1024 * 1024

interface Opened {
  readonly handle: FileHandle
  readonly found: Stats
}

/** A pipe or link that has taken its place since the look neither holds the open until someone reads it, nor leads elsewhere. */
const flags =
  constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK | constants.O_NOFOLLOW

/** Errors: `usage` for what is no file, and for one that another user made or may change: it could be any file of the machine. */
function refuseOthers(found: Stats): void {
  const refuse = (why: string) => {
    throw new RsmError('usage', why)
  }
  if (found.isSymbolicLink()) refuse('it is a symbolic link: name the file itself')
  if (!found.isFile()) refuse('it is not a regular file')
  const { uid, mode } = found
  if (uid !== process.getuid?.()) refuse(`it belongs to another user (uid ${uid}): move it away, or chown it`)
  if ((mode & 0o022) !== 0) refuse('other users may write it: chmod go-w, once you know that it is whole')
}

/** The last whole line of a file, and the bytes behind it. */
async function endOf({ handle, found }: Opened): Promise<{ last: Buffer; torn: Buffer }> {
  const end = Buffer.alloc(Math.min(endBytes, found.size))
  const { bytesRead } = await handle.read(end, 0, end.length, found.size - end.length)
  const text = end.subarray(0, bytesRead)
  const newline = text.lastIndexOf(10)
  const from = newline <= 0 ? 0 : text.lastIndexOf(10, newline - 1) + 1
  return { last: text.subarray(from, newline + 1), torn: text.subarray(newline + 1) }
}

/**
 * A file of lines that only grows. It is opened anew when another is in its place, as after a rotation. `isOurs`: whether the
 * log has that entry; to a file that ends otherwise nothing is added.
 */
export function createFileSink(path: string, isOurs: (head: AuditHead) => Promise<boolean>): Sink {
  let opened: Opened | null = null
  /** The newest entry that it held when it was opened. */
  let held: AuditHead | null = null

  async function ready(): Promise<Opened> {
    const there = await lstat(path).catch(() => null)
    if (opened !== null && there?.ino === opened.found.ino && there.dev === opened.found.dev) return opened
    await opened?.handle.close()
    opened = null
    if (there !== null) refuseOthers(there)
    const handle = await open(path, flags, 0o600)
    try {
      const found = await handle.stat()
      held = await check({ handle, found })
      if (there === null) await syncDirectory(dirname(path))
      opened = { handle, found }
    } finally {
      if (opened === null) await handle.close()
    }
    return opened
  }

  /** What it ends with; a line that a crash has cut is taken off. */
  async function check(file: Opened): Promise<AuditHead | null> {
    refuseOthers(file.found)
    if (file.found.size === 0) return null
    const { last, torn } = await endOf(file)
    const head = last.length === 0 ? null : headOf(last)
    const isForeign = last.length > 0 ? head === null || !(await isOurs(head)) : false
    if (
      isForeign ||
      (torn.length > 0 && !torn.subarray(0, 6).equals(Buffer.from('{"id":').subarray(0, torn.length)))
    )
      throw new RsmError(
        'usage',
        'it does not end with an entry of this audit log: move it away, or name another',
      )
    if (torn.length > 0) await file.handle.truncate(file.found.size - torn.length)
    return head
  }

  const explained = (error: unknown) =>
    error instanceof RsmError ? error : new RsmError('unavailable', whyUnwritable(error), { cause: error })

  return {
    settles: 0,
    wasLost: () => false,
    async holds() {
      try {
        await ready()
        return held
      } catch (error) {
        throw explained(error)
      }
    },
    async write(lines) {
      try {
        const { handle } = await ready()
        const { size } = await handle.stat()
        try {
          await writeWhole(handle.fd, lines, size)
          await handle.datasync()
        } catch (error) {
          // A full disk writes short before it fails.
          await handle.truncate(size).catch(() => undefined)
          throw error
        }
      } catch (error) {
        throw explained(error)
      }
    },
    async close() {
      await opened?.handle.close()
      opened = null
      return true
    },
  }
}
