import { constants } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Client } from '../../client/client.ts'
import { type Part, partsOf, type Source, upload } from '../../client/upload.ts'
import { RsmError } from '../../core/errors.ts'
import type { ExecutionOptions } from '../../core/protocol/http/tasks.ts'
import { beginning } from '../../core/text/pieces.ts'
import { modeBits } from '../../disk/files/attributes.ts'
import { Failure } from '../../disk/files/failure.ts'
import { bytesOf, hasChanged, piecesOf, sizeOf } from '../../disk/files/open-file.ts'
import { whyUnreadable } from '../../disk/named-files.ts'
import type { BaseCommand } from '../command/base-command.ts'
import type { StdinReader } from '../input/stdin.ts'
import { showTransfer } from '../output/status-line.ts'

/** Characters, the server's limit. */
const longestName = 255
const pieceBytes = 1024 * 1024

/** Uploads a source, with a progress line; returns the file's id. The caller closes the source. */
export async function sendSource(
  command: BaseCommand,
  client: Pick<Client, 'files'>,
  source: LocalSource,
  isSecret = false,
): Promise<string> {
  const progress = showTransfer(command, `sending ${source.name}`)
  try {
    const { fileId } = await upload(client.files, source, {
      name: shownName(source.fileName),
      isSecret,
      sent: (bytes) => progress.at(bytes, source.size),
      cut: progress.cut,
    })
    return fileId
  } finally {
    progress.end()
  }
}

/** Opens the scripts' stdin; uploaded only once the task is certain to start. Errors: `usage`. */
export async function openScriptStdin(
  command: BaseCommand,
  path: string,
  stdin: StdinReader,
): Promise<{
  readonly bring: (client: Client) => Promise<Pick<ExecutionOptions, 'stdin'>>
  readonly close: () => Promise<void>
}> {
  const source = path === '-' ? stdinSource(stdin, "the scripts' stdin") : await fileSource(path)
  return {
    bring: async (client) => ({ stdin: { fileId: await sendSource(command, client, source) } }),
    close: source.close,
  }
}

/** A name the server accepts, without invisible characters; undefined if nothing is left. */
function shownName(name = ''): string | undefined {
  const seen = beginning(name.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, ''), longestName)
  return seen.trim() === '' ? undefined : seen
}

/** Turns a fault of a local file into a usage error. */
export const explained = (error: unknown): unknown =>
  error instanceof Failure ? new RsmError('usage', error.message, { cause: error }) : error

/** A local source, opened once, so that what was checked is what is sent. */
export interface LocalSource extends Source {
  readonly name: string
  /** Its base name, or those of its parts; undefined if it has none. */
  readonly fileName?: string
  /** Mode of a file, e.g. `0644`. */
  readonly mode?: string
  readonly close: () => Promise<void>
}

export function stdinSource(stdin: StdinReader, what: string): LocalSource {
  const bytes = stdin.bytes(what)
  return { name: 'stdin', size: null, parts: () => partsOf(bytes), close: async () => {} }
}

/** A regular file, or the data of a pipe. Errors: `usage`. */
export async function fileSource(path: string): Promise<LocalSource> {
  const refused = (why: string, cause?: unknown) =>
    new RsmError('usage', `cannot read ${path}: ${why}`, cause === undefined ? {} : { cause })
  const opened = async () => {
    // Block for a pipe, but not for a kernel file without data.
    const isFifo = (await stat(path)).isFIFO()
    return open(path, isFifo ? constants.O_RDONLY : constants.O_RDONLY | constants.O_NONBLOCK)
  }
  const handle = await opened().catch((error: unknown) => {
    throw refused(whyUnreadable(error), error)
  })
  const found = await handle.stat()
  const close = () => handle.close()
  // E.g. a process substitution: <(command).
  if (found.isFIFO()) {
    const bytes = handle.createReadStream({ autoClose: false })
    return { name: path, size: null, parts: () => partsOf(bytes), close }
  }
  if (!found.isFile()) {
    await close()
    throw refused(found.isDirectory() ? 'it is a directory' : 'it is not a regular file')
  }
  const before = await handle.stat({ bigint: true })
  let size: number | null
  try {
    size = sizeOf(handle.fd, before, path)
  } catch (error) {
    await close()
    throw explained(error)
  }
  const changed = () => refused('it changed while it was read; run it again')
  async function* made(): AsyncGenerator<Uint8Array> {
    try {
      yield* bytesOf(handle.fd, undefined, path)
    } catch (error) {
      throw explained(error)
    }
  }
  async function* parts(): AsyncGenerator<Part> {
    if (size === null) yield* partsOf(made())
    else yield { length: size, isLast: true, from: (offset) => exactly(handle, offset, size, changed) }
    if (hasChanged(handle.fd, before)) throw changed()
  }
  const mode = (found.mode & modeBits).toString(8).padStart(4, '0')
  return { name: path, fileName: basename(path), size, mode, parts, close }
}

/** Bytes of a range. Fails if the file was truncated, because the server would wait for the rest. */
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
