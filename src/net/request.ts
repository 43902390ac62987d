import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { longestSilence } from '../core/protocol/bounds.ts'
import { type Connection, connectTimeout, rootOf } from './connect.ts'
import { bareHost } from './proxy.ts'

const answerTimeout = 60_000
/** Checks until a silent answer times out. Checks are counted, because a suspended process is not waiting. */
const checks = 9

/** Smallest and first size of a request, in bytes. */
const smallestPart = 64 * 1024
const firstPart = 512 * 1024
/** Milliseconds: after a quicker request the next one grows to fill this time; one over `slowRequest` shrinks it. */
const quickRequest = 1_000
const mostGrowth = 8
const slowRequest = 5_000

export interface Outgoing {
  readonly method: string
  /** Path with its query, from the base URL. */
  readonly path: string
  readonly headers: Record<string, string>
  /**
   * Pieces are read as fast as they are sent; each must stay valid until the next is requested. An error of
   * the iterator rejects the request.
   */
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array> | undefined
  readonly signal?: AbortSignal | undefined
}

export interface Incoming {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Readable
}

/** Sends a request; rejects without an answer, although the request may have arrived. */
export type Send = (request: Outgoing) => Promise<Incoming>

/** Timeouts in milliseconds. */
export interface Patience {
  /** Until the answer begins or more of the body is sent. */
  readonly answer?: number
  /** Between bytes of the answer; event streams send a comment every 15 s (contract §5). */
  readonly silence?: number
}

/** Sends requests over a connection; `explain` converts Node's errors. */
export function openRequests(
  { base, proxy, agent }: Connection,
  explain: (error: unknown) => Error,
  { answer = answerTimeout, silence = longestSilence }: Patience = {},
): Send {
  const http = process.getBuiltinModule(base.protocol === 'https:' ? 'node:https' : 'node:http')
  const prefix = base.pathname.replace(/\/$/, '')
  /** Errors of idle sockets that the server closed just as they were reused. */
  const stale = new WeakSet<Error>()
  const attempt = ({ method, path, headers, body, signal }: Outgoing): Promise<Incoming> =>
    new Promise((resolve, reject) => {
      const outgoing = http.request({
        agent,
        method,
        hostname: bareHost(base),
        port: base.port,
        path: prefix + path,
        headers,
        ...(signal === undefined ? {} : { signal }),
      })
      let unreadable: unknown
      const fail = (code: string) => outgoing.destroy(Object.assign(new Error('no answer in time'), { code }))
      // A proxy has its own timeout.
      const connecting = proxy === null ? setTimeout(fail, connectTimeout, 'EHOSTUNREACH') : undefined
      const answering = setTimeout(fail, answer, 'ETIMEDOUT')
      outgoing.on('socket', (socket) => {
        if (!socket.connecting) clearTimeout(connecting)
        else socket.once('connect', () => clearTimeout(connecting))
      })
      outgoing.on('response', (incoming) => {
        clearTimeout(answering)
        const silent = Object.assign(new Error('its answer stopped half-way'), { code: 'RSM_SILENT' })
        endWhenSilent(incoming, silence, () => explain(silent))
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: incoming })
      })
      outgoing.on('close', () => {
        clearTimeout(connecting)
        clearTimeout(answering)
      })
      outgoing.on('error', (error) => {
        if (signal?.aborted === true || unreadable === error) return reject(error)
        const explained = explain(error)
        if (outgoing.reusedSocket && rootOf(error).code === 'ECONNRESET') stale.add(explained)
        return reject(explained)
      })
      if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) outgoing.end(body)
      else
        sendPieces(outgoing, body, answering).catch((error: Error) => {
          unreadable = error
          outgoing.destroy(error)
        })
    })
  return async (request) => {
    // Any reused idle socket may be stale; after the last one a new socket is opened.
    for (;;) {
      try {
        return await attempt(request)
      } catch (error) {
        // The server may have handled the request: retry only if it changes nothing.
        if (!stale.has(error as Error) || request.method !== 'GET') throw error
      }
    }
  }
}

/** Ends an answer that has stopped arriving. A slow reader is not silence: buffered bytes show that. */
function endWhenSilent(incoming: IncomingMessage, silence: number, silent: () => Error): void {
  const { socket } = incoming
  let read = socket.bytesRead
  let missed = 0
  const checking = setInterval(() => {
    if (socket.bytesRead !== read || incoming.readableLength > 0 || incoming.complete) {
      read = socket.bytesRead
      missed = 0
    } else if (++missed === checks) incoming.destroy(silent())
  }, silence / checks)
  checking.unref()
  incoming.once('close', () => clearInterval(checking))
}

/** Sends a body as it is read. An early answer means that the request is wrong, so the rest is not sent. */
async function sendPieces(
  outgoing: ClientRequest,
  body: AsyncIterable<Uint8Array>,
  answering: NodeJS.Timeout,
): Promise<void> {
  let isOver = false
  let goOn = () => {}
  const stop = () => {
    isOver = true
    goOn()
  }
  outgoing.once('close', stop)
  outgoing.once('response', (incoming: IncomingMessage) => {
    if (outgoing.writableEnded) return
    stop()
    incoming.once('close', () => outgoing.destroy())
  })
  for await (const piece of body) {
    if (isOver) return
    answering.refresh()
    await new Promise<void>((resolve) => {
      goOn = resolve
      outgoing.write(piece, () => resolve())
    })
    if (isOver) return
  }
  outgoing.end()
}

/** Reads a whole answer. Errors: `tooLarge` if it is longer than `most` bytes. */
export async function readText(
  body: AsyncIterable<Buffer>,
  most: number,
  tooLarge: () => Error,
): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > most) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Seconds of a Retry-After header; undefined if it is missing or a date. */
export function retryAfterOf({ 'retry-after': text }: IncomingHttpHeaders): number | undefined {
  const seconds = text === undefined ? Number.NaN : Number(text)
  return seconds >= 0 && Number.isFinite(seconds) ? seconds : undefined
}

/** Adapts the size of upload requests, so that each arrives long before the server times out. */
export class PartSize {
  readonly #most: number
  #bytes = firstPart

  /** `most` in bytes. */
  constructor(most: number) {
    this.#most = most
  }

  /** From 64 KiB to `most`. */
  get bytes(): number {
    return this.#bytes
  }

  /** Adapts to the milliseconds that a request took. */
  took(milliseconds: number): void {
    if (milliseconds < quickRequest) {
      const growth = Math.min(mostGrowth, Math.max(2, Math.floor(quickRequest / milliseconds)))
      this.#bytes = Math.min(growth * this.#bytes, this.#most)
    } else if (milliseconds > slowRequest) this.#bytes = Math.max(this.#bytes / 2, smallestPart)
  }
}
