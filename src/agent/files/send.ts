import { createHash } from 'node:crypto'
import { parseEnvelope } from '../../net/envelope.ts'
import { PartSize, readText, type Send } from '../../net/request.ts'
import { type Later, laterOf, Patience, Refused } from './receive.ts'

const longestAnswer = 64 * 1024
/** Bytes per request; kept in memory until the server has them. */
const longestPart = 8 * 1024 * 1024

interface Destination {
  /** Path on the server, without a query. */
  readonly path: string
  readonly headers: Record<string, string>
  /** Seconds until attempts stop; 0 = no limit. */
  readonly timeout: number
}

/** Bytes that the server has by now and whether it accepted this request, or a temporary refusal. */
type Answer = { readonly offset: number; readonly isTaken: boolean } | Later

/** Uploads a stream of unknown length in order, resending each part until the server has it. */
class Sending {
  readonly #send: Send
  readonly #destination: Destination
  readonly #patience: Patience
  offset = 0
  readonly size = new PartSize(longestPart)

  constructor(send: Send, destination: Destination) {
    this.#send = send
    this.#destination = destination
    this.#patience = new Patience(destination.timeout)
  }

  async add(bytes: Buffer): Promise<void> {
    const began = performance.now()
    await this.#untilThere(bytes, '')
    this.size.took(performance.now() - began)
  }

  async end(sha256: string): Promise<void> {
    await this.#untilThere(Buffer.alloc(0), `&end=true&sha256=${sha256}`)
  }

  /** Keeps the bytes in memory, so that a retry sends the same even if the source changes. */
  async #untilThere(bytes: Buffer, query: string): Promise<void> {
    const first = this.offset
    const last = first + bytes.length
    for (;;) {
      let reason = 'the server is busy or unavailable'
      let retryAfter: number | undefined
      try {
        const answer = await this.#put(bytes.subarray(this.offset - first), query)
        if ('retryAfter' in answer) retryAfter = answer.retryAfter
        else {
          const { offset, isTaken } = answer
          if (offset < first || offset > last)
            throw new Refused(`the server has ${offset} bytes; expected ${first} to ${last}`)
          const isAhead = offset > this.offset
          if (isAhead) this.#patience.advanced()
          this.offset = offset
          if (offset === last && (isTaken || (query === '' && isAhead))) return
          if (isAhead) continue
          reason = 'another process sends it too'
        }
      } catch (error) {
        if (error instanceof Refused) throw error
        reason = error instanceof Error ? error.message : String(error)
      }
      await this.#patience.wait('upload', reason, retryAfter)
    }
  }

  async #put(bytes: Buffer, query: string): Promise<Answer> {
    const { path, headers } = this.#destination
    const about = { 'content-type': 'application/octet-stream', 'content-length': String(bytes.length) }
    const answer = await this.#send({
      method: 'PUT',
      path: `${path}?offset=${this.offset}${query}`,
      headers: { ...headers, ...about },
      body: bytes,
    })
    const { status, body } = answer
    const text = await readText(
      body as AsyncIterable<Buffer>,
      longestAnswer,
      () => new Error('the answer is too long'),
    )
    const later = laterOf(answer)
    if (later !== null) return later
    const { data, message } = parseEnvelope(text) ?? {}
    const offset = typeof data === 'object' && data !== null && 'offset' in data ? data.offset : undefined
    const isTaken = status >= 200 && status < 300
    if ((isTaken || status === 409) && typeof offset === 'number') return { offset, isTaken }
    throw new Refused(
      `the server answered ${status} to ${path}${message === undefined ? '' : `: ${message}`}`,
    )
  }
}

/**
 * Uploads bytes by offset: resumes after an interruption, and waits for an unavailable server. Resolves to
 * their number. Throws `Refused` if no retry can help, Error on timeout.
 */
export async function sendBytes(
  send: Send,
  destination: Destination,
  pieces: AsyncIterable<Buffer>,
): Promise<number> {
  const sending = new Sending(send, destination)
  const hash = createHash('sha256')
  let pending: Buffer[] = []
  let bytes = 0
  const flush = async () => {
    if (bytes === 0) return
    const all = Buffer.concat(pending)
    pending = []
    bytes = 0
    hash.update(all)
    await sending.add(all)
  }
  for await (const piece of pieces) {
    pending.push(piece)
    bytes += piece.length
    if (bytes >= sending.size.bytes) await flush()
  }
  await flush()
  await sending.end(hash.digest('hex'))
  return sending.offset
}
