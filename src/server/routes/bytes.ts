import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { RsmError } from '../../core/errors.ts'
import type { Rate } from '../files/transfers.ts'
import { notBytes } from '../http/answers.ts'
import { rangeOf } from '../http/served-files.ts'
import type { Body } from '../services/files.ts'

/** Bytes per write, so that other connections have their turn in between. */
const pieceBytes = 256 * 1024
/** Milliseconds without progress after which the download of a stalled reader is aborted. */
const stalledAfter = 120_000

/** The body of a request for an operation with `bytes`, as a stream. @throws RsmError `media_type` */
export function bodyOf(request: FastifyRequest): Body {
  const { body, headers } = request
  if (body instanceof Readable) {
    const contentLength = headers['content-length']
    return { bytes: whole(body), length: contentLength === undefined ? null : Number(contentLength) }
  }
  if (headers['content-type'] !== undefined) throw new RsmError('media_type', notBytes)
  return { bytes: Readable.from([]), length: 0 }
}

/** Streams a body; reports a body that is cut off as the sender's fault. */
async function* whole(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of body) {
      countPassed(piece.length)
      yield piece
    }
  } catch (cause) {
    throw new RsmError('invalid', 'The body was cut off', { cause })
  }
}

interface Sendable {
  readonly size: number
  readonly sha256: string
  readonly type: string
  readonly rate: Rate | null
  /** Called with the offset up to which bytes were sent. */
  readonly sent?: (bytes: number) => void
  readonly read: (from: number, to: number) => AsyncIterable<Uint8Array>
}

/** Sends a file, or the part in Range (RFC 9110 §14), with backpressure. Rejects if the first read fails. */
export async function sendBytes(
  request: FastifyRequest,
  reply: FastifyReply,
  { size, sha256, type, rate, sent, read }: Sendable,
): Promise<FastifyReply> {
  const etag = `"${sha256}"`
  const condition = request.headers['if-range']
  const range = condition === undefined || condition === etag ? rangeOf(request.headers.range, size) : null
  const { first, last } = range === 'unsatisfiable' || range === null ? { first: 0, last: size - 1 } : range
  const isWhole = request.method !== 'HEAD' && range !== 'unsatisfiable'
  const controller = new AbortController()
  reply.raw.once('close', () => controller.abort())
  let at = first
  const begun = even(read(first, isWhole ? last + 1 : first), rate, controller.signal, (bytes) => {
    at += bytes
    sent?.(at)
  })
  const head = await begun.next().catch((error: unknown) => {
    if (controller.signal.aborted) return null
    throw error
  })
  // The reader left meanwhile, so no answer is needed.
  if (head === null) return reply.hijack()
  const bytes = resumed(head, begun)
  reply.headers({ 'accept-ranges': 'bytes', 'cache-control': 'no-store', etag }).type(type)
  if (range === 'unsatisfiable')
    return reply.code(416).header('content-range', `bytes */${size}`).send(Readable.from([]))
  if (range !== null) reply.code(206).header('content-range', `bytes ${first}-${last}/${size}`)
  reply.header('content-length', last - first + 1)
  if (!isWhole) return reply.send(Readable.from([]))
  reply.raw.setTimeout(stalledAfter, () => reply.raw.destroy())
  // Audited downloads go through the hooks that write the entry.
  if (request.routeOptions.config.operation?.audit)
    return reply.send(Readable.from(copies(bytes), { objectMode: false, highWaterMark: pieceBytes }))
  reply.hijack()
  reply.raw.writeHead(reply.statusCode, reply.getHeaders() as OutgoingHttpHeaders)
  void writeAll(reply.raw, bytes)
  return reply
}

async function* even(
  bytes: AsyncIterable<Uint8Array>,
  rate: Rate | null,
  signal: AbortSignal,
  gone: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  const size = rate?.piece(pieceBytes) ?? pieceBytes
  for await (const piece of bytes)
    for (let at = 0; at < piece.length; at += size) {
      const part = piece.subarray(at, at + size)
      await rate?.take(part.length, signal)
      yield part
      gone(part.length)
    }
}

/** Continues a generator whose first value was read early, so that its errors still become an answer. */
export async function* resumed<T>(first: IteratorResult<T>, rest: AsyncGenerator<T>): AsyncGenerator<T> {
  try {
    if (first.done) return
    yield first.value
    yield* rest
  } finally {
    // If the reader leaves at the first value, `rest` is suspended and still holds its file open.
    await rest.return(undefined)
  }
}

async function* copies(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  for await (const piece of bytes) yield Buffer.from(piece)
}

/** Writes each piece after the previous one is flushed: all share one buffer, so fifty readers take little memory. */
async function writeAll(raw: ServerResponse, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const piece of bytes)
      await new Promise<void>((resolve, reject) => {
        raw.write(piece, (error) => (error ? reject(error) : resolve()))
      })
    raw.end()
  } catch {
    // Cut the connection: a reader that is still there resumes with Range and gets the error as an answer.
    raw.destroy()
  }
}

/** Bytes of processed bodies after which their memory is collected; V8 would wait for four times as many. */
const collectAfter = 16 * 1024 * 1024

// Global rather than per server, because all servers of one process share its heap.
let collectYoung: ((options: { type: 'minor' }) => void) | undefined
let passed = 0

/** Counts processed bytes and collects their buffers: Node allocates one per piece of a body. */
function countPassed(bytes: number): void {
  passed += bytes
  if (passed < collectAfter) return
  passed = 0
  if (collectYoung === undefined) {
    setFlagsFromString('--expose-gc')
    collectYoung = runInNewContext('gc') as typeof collectYoung
    // V8 rejects cached code compiled with other flags.
    setFlagsFromString('--no-expose-gc')
  }
  collectYoung?.({ type: 'minor' })
}
