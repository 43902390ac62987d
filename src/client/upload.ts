import { setTimeout as delay } from 'node:timers/promises'
import { RsmError } from '../core/errors.ts'
import type { File } from '../core/protocol/http/files.ts'
import { PartSize } from '../net/request.ts'
import type { ClientFileService } from './services/files.ts'

/** Bytes of one part of a stream, in memory until it is on the server's disk. A multiple of the sealed block size. */
export const partBytes = 8 * 1024 * 1024

/** Most bytes of one request for a file: each waits for the server's disk, and proxies limit bodies. */
const longestRequest = 64 * 1024 * 1024

/** Milliseconds for which a transfer without progress is retried, and between two attempts. */
export const patience = 300_000
export const pause = 1_000

/** Bytes of a source that can be read again until they have arrived. */
export interface Part {
  readonly length: number
  readonly isLast: boolean
  /** A piece is valid until the next one is requested. */
  readonly from: (offset: number) => AsyncIterable<Uint8Array>
}

export interface Source {
  /** Null if unknown before the end. */
  readonly size: number | null
  readonly parts: () => AsyncIterable<Part>
}

interface UploadOptions {
  /** Local name; undefined if it has none. */
  readonly name?: string | undefined
  readonly isSecret: boolean
  /** Called with the bytes of the source sent so far. */
  readonly sent: (bytes: number) => void
  /** The connection was lost; the upload will resume. */
  readonly cut: (why: string) => void
}

/**
 * Uploads a source, resuming after a cut. Errors: `too_large`, `unreachable` after five minutes without progress, and
 * those of reading the source.
 */
export async function upload(
  files: ClientFileService,
  { size: total, parts }: Source,
  { name, isSecret, sent, cut }: UploadOptions,
): Promise<File> {
  const begun = await files.begin({
    ...(name !== undefined && { name }),
    ...(total !== null && { size: total }),
    ...(isSecret && { secret: true }),
  })
  const { fileId } = begun
  const size = new PartSize(longestRequest)
  let file = begun
  let failingSince: number | undefined

  async function standingAfter(error: unknown): Promise<File> {
    if (!isPassing(error)) throw error
    if (failingSince === undefined) cut(error.message)
    failingSince ??= performance.now()
    for (;;) {
      if (performance.now() - failingSince > patience) throw error
      await delay(pause)
      try {
        return await files.get(fileId)
      } catch (again) {
        if (!isPassing(again)) throw again
      }
    }
  }

  async function send({ length, isLast, from }: Part, start: number): Promise<void> {
    const end = start + length
    const isThere = () => file.isComplete || (!isLast && file.offset >= end)
    while (!isThere()) {
      const { offset } = file
      if (offset < start)
        throw new RsmError('unavailable', 'the server lost a part of the upload: start again')
      const until = Math.min(end, offset + size.bytes)
      const body = cutTo(from(offset - start), offset, until, sent)
      const query = { offset, ...(total === null && isLast && until === end && { end: true }) }
      const began = performance.now()
      try {
        file = await files.append(fileId, query, body, until - offset)
      } catch (error) {
        file = await standingAfter(error)
      }
      size.took(performance.now() - began)
      if (file.offset > offset) failingSince = undefined
    }
  }

  let start = 0
  for await (const part of parts()) {
    await send(part, start)
    start += part.length
  }
  return file
}

async function* cutTo(
  bytes: AsyncIterable<Uint8Array>,
  from: number,
  to: number,
  sent: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  let at = from
  if (at === to) return
  for await (const whole of bytes) {
    const piece = whole.subarray(0, to - at)
    at += piece.length
    sent(at)
    yield piece
    if (at === to) return
  }
}

/** Whether to retry: the bytes may have arrived, in part or in full. */
export const isPassing = (error: unknown): error is RsmError =>
  error instanceof RsmError && ['unreachable', 'unavailable', 'conflict', 'too_many'].includes(error.code)

/** Splits a stream into parts that can be sent again, because the stream cannot be read twice. */
export async function* partsOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Part> {
  const partOf = (content: Buffer, isLast: boolean): Part => ({
    length: content.length,
    isLast,
    async *from(offset) {
      yield content.subarray(offset)
    },
  })
  let waiting: Uint8Array[] = []
  let length = 0
  for await (const piece of bytes) {
    waiting.push(piece)
    length += piece.length
    // `>` rather than `>=`, because a part that ends here may be the last one.
    while (length > partBytes) {
      const all = Buffer.concat(waiting)
      yield partOf(all.subarray(0, partBytes), false)
      waiting = [all.subarray(partBytes)]
      length = all.length - partBytes
    }
  }
  yield partOf(Buffer.concat(waiting), true)
}
