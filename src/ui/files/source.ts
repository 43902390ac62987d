import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { type Part, partsOf, type Source } from '../../client/upload.ts'
import { RsmError } from '../../core/errors.ts'
import { whyUnreadable } from '../../disk/unreadable.ts'
import type { StdinReader } from '../input/stdin.ts'

const pieceBytes = 256 * 1024

/** Something local that is opened once, so that what was looked at is what is sent. */
export interface LocalSource extends Source {
  readonly name: string
  /** The permissions of a file, like `0644`. */
  readonly mode?: string
  readonly close: () => Promise<void>
}

/** Stdin, to its end. */
export function stdinSource(stdin: StdinReader, what: string): LocalSource {
  const bytes = stdin.bytes(what)
  return { name: 'stdin', size: null, parts: () => partsOf(bytes), close: async () => {} }
}

/** A regular file, or what a pipe brings. Errors: `usage`. */
export async function fileSource(path: string): Promise<LocalSource> {
  const refused = (why: string, cause?: unknown) =>
    new RsmError('usage', `cannot read ${path}: ${why}`, { cause })
  const handle = await open(path, constants.O_RDONLY).catch((error: unknown) => {
    throw refused(whyUnreadable(error), error)
  })
  const found = await handle.stat()
  const close = () => handle.close()
  // As of a process substitution: <(command).
  if (found.isFIFO()) {
    const bytes = handle.createReadStream({ autoClose: false })
    return { name: path, size: null, parts: () => partsOf(bytes), close }
  }
  if (!found.isFile()) {
    await close()
    throw refused(found.isDirectory() ? 'it is a directory' : 'it is no regular file')
  }
  const { size, mtimeMs } = found
  const changed = () => refused('it changed while it was read; run it again')
  async function* parts(): AsyncGenerator<Part> {
    yield { length: size, isLast: true, from: (offset) => exactly(handle, offset, size, changed) }
    const now = await handle.stat()
    if (now.size !== size || now.mtimeMs !== mtimeMs) throw changed()
  }
  return { name: path, size, mode: `0${(found.mode & 0o777).toString(8).padStart(3, '0')}`, parts, close }
}

/**
 * The bytes from one place to another. A file that has become shorter would leave the server waiting. A stream of Node's would
 * close the file where its reader leaves early.
 */
async function* exactly(
  handle: FileHandle,
  from: number,
  to: number,
  changed: () => RsmError,
): AsyncGenerator<Uint8Array> {
  for (let at = from; at < to; ) {
    const piece = Buffer.allocUnsafe(Math.min(pieceBytes, to - at))
    const { bytesRead } = await handle.read(piece, 0, piece.length, at)
    if (bytesRead === 0) throw changed()
    yield piece.subarray(0, bytesRead)
    at += bytesRead
  }
}
