import { createHash } from 'node:crypto'
import type { FileOfTask } from '../../core/protocol/messages.ts'
import { Failure } from '../../disk/files/failure.ts'
import { openConnection, reasonOf } from '../../net/connect.ts'
import { parseEnvelope } from '../../net/envelope.ts'
import { openRequests, PartSize, readText, type Send } from '../../net/request.ts'
import { readIdentity } from '../link/identity.ts'
import { type CopyWorkspace, cancelledMessage } from './copy-workspace.ts'
import type { FileOrder } from './order.ts'
import { type Later, laterOf, Patience, Refused, receive } from './receive.ts'

/** Milliseconds for an answer: an upload is answered only once it is on the server's disk. */
const patience = 120_000
const longestAnswer = 64 * 1024
/** Bytes per request; kept in memory until the server has them. */
const longestPart = 8 * 1024 * 1024

/** Transfers files of an order from and to the server, with the agent's token. */
export class ServerLine {
  readonly #send: Send
  readonly #headers: Record<string, string>
  readonly close: () => void

  private constructor(send: Send, token: string, close: () => void) {
    this.#send = send
    this.#headers = { authorization: `Bearer ${token}` }
    this.close = close
  }

  /** Reads token and authorities as the agent's own user. Sends nothing once the order is cancelled. */
  static async open(order: FileOrder, workspace: Pick<CopyWorkspace, 'isAllowed'>): Promise<ServerLine> {
    const registration = (await readIdentity(order.dataDir))?.registration
    if (!registration) throw new Failure('this agent is no longer registered', 126)
    const connection = openConnection(order)
    const send = openRequests(connection, (error) => new Error(reasonOf(error)), { answer: patience })
    const sendUnlessCancelled: Send = async (request) => {
      // Otherwise it would wait forever if the agent was removed meanwhile.
      if (!workspace.isAllowed) throw new Refused(cancelledMessage)
      return send(request)
    }
    return new ServerLine(sendUnlessCancelled, registration.token, () => connection.agent.destroy())
  }

  /**
   * Downloads a file. Throws `Failure` after the last byte if it does not match its signed checksum. Waits
   * for an unavailable server for as long as the agent lets this process run.
   */
  async *receive({ fileId, size, sha256 }: FileOfTask): AsyncGenerator<Buffer> {
    const source = {
      path: `/api/agent/files/${fileId}`,
      headers: this.#headers,
      name: `the file ${fileId}`,
      size,
      absent: 'no task running on this host needs the file',
      timeout: 0,
    }
    const hash = createHash('sha256')
    try {
      for await (const piece of receive(this.#send, source)) {
        hash.update(piece)
        yield piece
      }
    } catch (error) {
      throw error instanceof Refused ? new Failure(error.message) : error
    }
    const found = hash.digest('hex')
    if (found !== sha256) throw new Failure(`the received data has sha256 ${found}, not ${sha256} as signed`)
  }

  /** Uploads data for a task; resolves to the number of bytes. Waits like `receive`. */
  async send(taskId: string, pieces: AsyncIterable<Buffer>): Promise<number> {
    const path = `/api/agent/tasks/${taskId}/file`
    try {
      return await new Sending(this.#send, path, this.#headers).all(pieces)
    } catch (error) {
      throw error instanceof Refused ? new Failure(error.message) : error
    }
  }
}

/** Bytes that the server has by now and whether it accepted this request, or a temporary refusal. */
type Answer = { readonly offset: number; readonly isTaken: boolean } | Later

/** Uploads a stream of unknown length in order, resending each part until the server has it. */
class Sending {
  readonly #send: Send
  readonly #path: string
  readonly #headers: Record<string, string>
  readonly #patience = new Patience(0)
  readonly #size = new PartSize(longestPart)
  #offset = 0

  constructor(send: Send, path: string, headers: Record<string, string>) {
    this.#send = send
    this.#path = path
    this.#headers = headers
  }

  /** Resolves to the number of bytes. Throws `Refused` if no retry can help. */
  async all(pieces: AsyncIterable<Buffer>): Promise<number> {
    const hash = createHash('sha256')
    let pending: Buffer[] = []
    let bytes = 0
    const flush = async () => {
      if (bytes === 0) return
      const part = Buffer.concat(pending)
      pending = []
      bytes = 0
      hash.update(part)
      const began = performance.now()
      await this.#untilThere(part, '')
      this.#size.took(performance.now() - began)
    }
    for await (const piece of pieces) {
      pending.push(piece)
      bytes += piece.length
      if (bytes >= this.#size.bytes) await flush()
    }
    await flush()
    await this.#untilThere(Buffer.alloc(0), `&end=true&sha256=${hash.digest('hex')}`)
    return this.#offset
  }

  /** Keeps the bytes in memory, so that a retry sends the same even if the source changes. */
  async #untilThere(bytes: Buffer, query: string): Promise<void> {
    const first = this.#offset
    const last = first + bytes.length
    for (;;) {
      let reason = 'the server is busy or unavailable'
      let retryAfter: number | undefined
      try {
        const answer = await this.#put(bytes.subarray(this.#offset - first), query)
        if ('retryAfter' in answer) retryAfter = answer.retryAfter
        else {
          const { offset, isTaken } = answer
          if (offset < first || offset > last)
            throw new Refused(`the server has ${offset} bytes; expected ${first} to ${last}`)
          const isAhead = offset > this.#offset
          if (isAhead) this.#patience.advanced()
          this.#offset = offset
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
    const about = { 'content-type': 'application/octet-stream', 'content-length': String(bytes.length) }
    const answer = await this.#send({
      method: 'PUT',
      path: `${this.#path}?offset=${this.#offset}${query}`,
      headers: { ...this.#headers, ...about },
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
      `the server answered ${status} to ${this.#path}${message === undefined ? '' : `: ${message}`}`,
    )
  }
}
