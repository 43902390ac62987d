import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { basename } from 'node:path'
import { type Part, partsOf, type Source } from '../../client/upload.ts'
import { RsmError } from '../../core/errors.ts'
import { Failure } from '../../disk/files/failure.ts'
import { assertOnDisk, hasChanged, hasOtherSize } from '../../disk/files/reading.ts'
import { piecesOf } from '../../disk/pieces.ts'
import { whyUnreadable } from '../../disk/unreadable.ts'
import type { StdinReader } from '../input/stdin.ts'

const pieceBytes = 1024 * 1024

/** Something local that is opened once, so that what was looked at is what is sent. */
export interface LocalSource extends Source {
  readonly name: string
  /** Its own name, or those of what it is made of; undefined where it has none. */
  readonly fileName?: string
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
  const refused = (why: string, more: { readonly cause?: unknown; readonly hint?: string } = {}) =>
    new RsmError('usage', `cannot read ${path}: ${why}`, more)
  const hint = `pipe what it holds, with - for its name: cat ${path} | rsm …`
  const handle = await open(path, constants.O_RDONLY).catch((error: unknown) => {
    throw refused(whyUnreadable(error), { cause: error })
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
  try {
    assertOnDisk(handle.fd, 'it')
  } catch (error) {
    await close()
    throw error instanceof Failure ? refused(error.message, { hint }) : error
  }
  const { size } = found
  const before = await handle.stat({ bigint: true })
  const changed = () =>
    hasChanged(handle.fd, before)
      ? refused('it changed while it was read; run it again')
      : refused(`it does not have the ${size} bytes that the system promises`, { hint })
  async function* parts(): AsyncGenerator<Part> {
    yield { length: size, isLast: true, from: (offset) => exactly(handle, offset, size, changed) }
    if (hasChanged(handle.fd, before) || hasOtherSize(handle.fd, size, size)) throw changed()
  }
  return {
    name: path,
    fileName: basename(path),
    size,
    mode: `0${(found.mode & 0o777).toString(8).padStart(3, '0')}`,
    parts,
    close,
  }
}

/** The bytes from one place to another. A file that has become shorter would leave the server waiting. */
async function* exactly(
  handle: FileHandle,
  from: number,
  to: number,
  changed: () => RsmError,
): AsyncGenerator<Uint8Array> {
  let at = from
  for await (const piece of piecesOf(handle.fd, { from, to, pieceBytes, isReused: true })) {
    at += piece.length
    yield piece
  }
  if (at < to) throw changed()
}
