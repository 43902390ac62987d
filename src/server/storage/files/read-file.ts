import { type FileHandle, open } from 'node:fs/promises'
import { RsmError } from '../../../core/errors.ts'
import { nullWhereMissing } from '../../../disk/durable.ts'

/** Few enough bytes to scan within a millisecond. */
const chunkBytes = 64 * 1024
/** Bytes searched backwards for the last newline; the longest line of output is a frame of 1 MiB. */
const longestTail = 2 * 1024 * 1024
const newline = 10

/** Items that `read` yields for a file; none if it is missing. */
export async function* opened<T>(
  path: string,
  read: (file: FileHandle) => AsyncGenerator<T>,
): AsyncGenerator<T> {
  const file = await open(path, 'r').catch(nullWhereMissing)
  if (file === null) return
  try {
    yield* read(file)
  } finally {
    await file.close()
  }
}

/** The first `size` bytes of a file. Errors: `unavailable` if it has fewer. */
export async function* readFirst(handle: FileHandle, size: number, name: string): AsyncGenerator<Buffer> {
  for (let at = 0; at < size; ) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, size - at))
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, at)
    if (bytesRead === 0)
      throw new RsmError('unavailable', `${name} ends at byte ${at}; it had ${size} when the backup began`, {
        hint: 'make the backup again',
      })
    yield chunk.subarray(0, bytesRead)
    at += bytesRead
  }
}

/** Bytes of a file that are whole lines; later bytes are being written, or were cut off. */
export async function wholeLines(handle: FileHandle): Promise<number> {
  const { size } = await handle.stat()
  const from = Math.max(0, size - longestTail)
  for (let end = size; end > from; ) {
    const begin = Math.max(from, end - chunkBytes)
    const chunk = Buffer.allocUnsafe(end - begin)
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, begin)
    const at = chunk.subarray(0, bytesRead).lastIndexOf(newline)
    if (at >= 0) return begin + at + 1
    end = begin
  }
  return from
}

/** Passes bytes through, and reports the offset of the first damaged line. */
export async function* watchLines(
  bytes: AsyncIterable<Buffer>,
  isAsWritten: (line: Buffer) => boolean,
  damaged: (offset: number) => unknown,
): AsyncGenerator<Buffer> {
  let rest: Buffer[] = []
  let offset = 0
  let isSound = true
  for await (const chunk of bytes) {
    let from = 0
    for (let end = chunk.indexOf(newline); isSound && end !== -1; end = chunk.indexOf(newline, from)) {
      const part = chunk.subarray(from, end)
      const line = rest.length === 0 ? part : Buffer.concat([...rest, part])
      if (!isAsWritten(line)) {
        isSound = false
        damaged(offset)
      }
      offset += line.length + 1
      rest = []
      from = end + 1
    }
    if (isSound && from < chunk.length) rest.push(chunk.subarray(from))
    yield chunk
  }
}
