import { Readable } from 'node:stream'
import { codeOfStatus, type ErrorCode, RsmError } from '../../core/errors.ts'
import type { Page } from '../../core/protocol/http/common.ts'
import { pageFields } from '../../core/services.ts'
import { areUnknownNames, foldUnknownNames } from '../../core/text/unknown-names.ts'
import { pause } from '../../net/backoff.ts'
import { isObject, parseEnvelope, parseObject } from '../../net/envelope.ts'
import { type FollowOptions, followEvents, type ServerEvent } from '../../net/event-stream.ts'
import { type Incoming, readText, retryAfterOf, type Send } from '../../net/request.ts'
import { isLost } from './transport.ts'

type Query = Record<string, string | number | boolean | readonly string[] | undefined>

interface CallOptions {
  readonly query?: object
  readonly body?: unknown
  /** Instead of a body: bytes sent as they are read. */
  readonly bytes?: { readonly body: AsyncIterable<Uint8Array>; readonly length: number }
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal | undefined
  /** May be repeated if its answer was lost: idempotent by its key. */
  readonly repeatable?: boolean
  /** Changes nothing, like GET. */
  readonly onlyReads?: boolean
  /** A refusal is a valid answer: do not repeat the call. */
  readonly mayBeRefused?: boolean
  /** Fields without which the `data` is not from an rsm server. */
  readonly has?: readonly string[]
}

/** Clock, pauses and listener of retries; replaced in tests. */
export interface Retries {
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly pause: (milliseconds: number, signal?: AbortSignal) => Promise<unknown>
  /** Called before the first pause. */
  readonly refused: (error: RsmError) => void
}

export const silentRetries: Retries = {
  now: () => performance.now(),
  pause,
  refused: () => undefined,
}

/** A larger answer is not from an rsm server. */
const maxAnswerBytes = 512 * 1024 * 1024
/** Milliseconds that an answer read as a whole may take. */
const longestAnswer = 300_000
/** Milliseconds for which a repeatable call is retried after its connection was lost. */
const repeatWindow = 30_000
const repeatPause = 500
/** Milliseconds for which a call is repeated after 503 with Retry-After: enough for a failover. */
const refusedWindow = 15_000

const tooLarge = () => new RsmError('too_large', 'the answer of the server is too large')

export function withQuery(path: string, query: object = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query as Query)) {
    if (value === undefined) continue
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one))
  }
  const text = search.toString()
  return text === '' ? path : `${path}?${text}`
}

/** A connection lost in mid-answer must not look like the end of the answer, or like a file error. */
async function* whole(body: Readable, url: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of body) yield chunk as Buffer
  } catch (error) {
    if (error instanceof RsmError) throw error
    const cause = Object.assign(new Error('connection lost', { cause: error }), { code: 'ECONNRESET' })
    throw new RsmError('unreachable', `cannot reach ${url}: connection lost in mid-answer`, { cause })
  }
}

/** An answer that is not from an rsm server: something else listens there, or intercepts the connection. */
function foreign(code: ErrorCode, url: string, answered: string): RsmError {
  return new RsmError(code, `${url} answered ${answered}, not like an rsm server`, {
    hint: 'check --url',
  })
}

/** Parses the object of an event. Errors: `internal` if it is not an object, or lacks one of `fields`. */
export function eventObject(url: string, text: string, fields: readonly string[] = []): object {
  const parsed = parseObject(text)
  if (parsed !== undefined && fields.every((field) => field in parsed)) return parsed
  throw foreign('internal', url, 'with an event that cannot be read')
}

/** Calls to one server; every method rejects with an RsmError. */
export class Api {
  readonly url: string
  readonly #send: Send
  readonly #token: string | undefined
  readonly #answerTime: number
  readonly #retries: Retries
  /** Shared with the instances that `until` returns. */
  readonly #state: { hasAnswer: boolean; wasRefused: boolean }

  constructor(
    url: string,
    send: Send,
    token: string | undefined,
    answerTime = longestAnswer,
    retries = silentRetries,
    state = { hasAnswer: false, wasRefused: false },
  ) {
    this.url = url
    this.#send = send
    this.#token = token
    this.#answerTime = answerTime
    this.#retries = retries
    this.#state = state
  }

  /** An Api whose calls are all aborted by `signal`. */
  until(signal: AbortSignal): Api {
    const either = (own: AbortSignal | undefined) =>
      own === undefined ? signal : AbortSignal.any([own, signal])
    const send: Send = (request) => this.#send({ ...request, signal: either(request.signal) })
    const retries: Retries = {
      ...this.#retries,
      pause: (milliseconds, own) => this.#retries.pause(milliseconds, either(own)),
    }
    return new Api(this.url, send, this.#token, this.#answerTime, retries, this.#state)
  }

  /** Resolves to the `data` of the answer (contract §1). */
  async call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    if (options.mayBeRefused === true) return this.#once<T>(method, path, options)
    if (options.repeatable !== true) return this.#unlessRefused<T>(method, path, options)
    let until = 0
    for (;;) {
      try {
        return await this.#unlessRefused<T>(method, path, options)
      } catch (error) {
        if (!(error instanceof RsmError)) throw error
        // Only a connection lost after it was established is worth a wait; a server that is down is an error at once.
        if (until === 0 && !isLost(error)) throw error
        if (error.code !== 'unreachable' && error.code !== 'unavailable') throw error
        if (until === 0) until = performance.now() + repeatWindow
        if (performance.now() >= until) throw error
        await pause(repeatPause)
      }
    }
  }

  page<T>(path: string, query: object | undefined): Promise<Page<T>> {
    return this.call('GET', path, { query: query ?? {}, has: pageFields })
  }

  /** Makes any call and returns its bare answer: `data` if it comes in the envelope, else its text. */
  async raw(method: string, path: string, body?: string): Promise<{ data: unknown } | { text: string }> {
    const answer = await this.#ask(method, path, body, { accept: '*/*' })
    // Other types, such as a log in text, may stream for as long as data arrives.
    const isWhole = /^application\/json\b/.test(answer.headers['content-type'] ?? '')
    const text = await this.#text(answer.body, isWhole ? this.#answerTime : null)
    if (answer.status >= 300) throw this.failure(answer.status, text, answer.headers)
    const envelope = parseEnvelope(text)
    return envelope === undefined ? { text } : { data: envelope.data }
  }

  /** Opens the bare stream of an answer (server-sent events, plain text). */
  async stream(path: string, headers: Record<string, string>, signal?: AbortSignal): Promise<Readable> {
    return (await this.open(path, headers, signal)).body
  }

  /** Opens an answer. `bytes` is its body, and throws `unreachable` if the connection is lost before the end. */
  async open(
    path: string,
    headers: Record<string, string>,
    signal?: AbortSignal,
  ): Promise<Incoming & { bytes: AsyncIterable<Buffer> }> {
    const answer = await this.#ask('GET', path, undefined, headers, signal)
    if (answer.status < 300) return { ...answer, bytes: whole(answer.body, this.url) }
    throw this.failure(answer.status, await this.#text(answer.body), answer.headers)
  }

  /** Events at `path`, whose argument is true for a resumed stream; otherwise like `followEvents`. */
  events(
    path: (resumed: boolean) => string,
    options: FollowOptions,
    givenUp: (cut: RsmError) => RsmError,
  ): AsyncGenerator<ServerEvent> {
    const open = (lastId: string | undefined) => {
      const resume: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId }
      const headers = { accept: 'text/event-stream', ...resume }
      return this.stream(path(lastId !== undefined), headers, options.signal)
    }
    return followEvents(open, this.url, options, givenUp)
  }

  /** Downloads an answer that has an end. A connection lost before it is `unreachable`. */
  async download(path: string, accept: string, query: object = {}): Promise<Readable> {
    const body = await this.stream(withQuery(path, query), { accept })
    return Readable.from(whole(body, this.url), { objectMode: false })
  }

  /** Repeats a call refused with Retry-After if it has a key, or if it only reads and precedes the first answer. */
  async #unlessRefused<T>(method: string, path: string, options: CallOptions): Promise<T> {
    const { now, pause, refused } = this.#retries
    const until = now() + refusedWindow
    for (;;) {
      try {
        const data = await this.#once<T>(method, path, options)
        this.#state.hasAnswer = true
        return data
      } catch (error) {
        const onlyReads = options.onlyReads ?? method === 'GET'
        const mayRepeat = options.repeatable === true || (onlyReads && !this.#state.hasAnswer)
        if (!mayRepeat || !(error instanceof RsmError) || error.code !== 'unavailable') throw error
        if (error.retryAfter === undefined) throw error
        const wait = Math.max(repeatPause, error.retryAfter * 1000)
        if (now() + wait > until || options.signal?.aborted === true) throw error
        if (!this.#state.wasRefused) refused(error)
        this.#state.wasRefused = true
        await pause(wait, options.signal)
      }
    }
  }

  async #once<T>(method: string, path: string, options: CallOptions): Promise<T> {
    const { query, bytes, has = [], headers = {}, signal } = options
    const body = options.body === undefined ? bytes?.body : JSON.stringify(options.body)
    const more =
      bytes === undefined
        ? headers
        : { ...headers, 'content-type': 'application/octet-stream', 'content-length': String(bytes.length) }
    const answer = await this.#ask(method, withQuery(path, query), body, more, signal)
    const { status } = answer
    const text = await this.#text(answer.body)
    const envelope = parseEnvelope(text)
    if (status >= 300 || envelope === undefined) throw this.failure(status, text, answer.headers)
    const { data } = envelope
    if (isObject(data) && has.every((field) => field in data)) return data as T
    throw foreign('internal', this.url, `${status} without the data`)
  }

  #ask(
    method: string,
    path: string,
    body: string | AsyncIterable<Uint8Array> | undefined,
    more: Record<string, string>,
    signal?: AbortSignal,
  ): Promise<Incoming> {
    const headers: Record<string, string> = { accept: 'application/json', 'user-agent': 'rsm', ...more }
    if (this.#token !== undefined) headers['authorization'] = `Bearer ${this.#token}`
    if (typeof body === 'string') {
      headers['content-type'] = 'application/json'
      headers['content-length'] = String(Buffer.byteLength(body))
    }
    return this.#send({ method, path, headers, body, signal })
  }

  async #text(body: Readable, within: number | null = this.#answerTime): Promise<string> {
    const tooLong = new RsmError('unreachable', `cannot reach ${this.url}: its answer does not end`)
    const bound = within === null ? undefined : setTimeout(() => body.destroy(tooLong), within)
    try {
      return await readText(whole(body, this.url), maxAnswerBytes, tooLarge)
    } finally {
      clearTimeout(bound)
    }
  }

  failure(status: number, text: string, headers: Incoming['headers']): RsmError {
    const retryAfter = retryAfterOf(headers)
    const envelope = parseEnvelope(text)
    if (envelope === undefined) {
      const code = status >= 502 && status <= 504 ? 'unreachable' : 'internal'
      return foreign(code, this.url, String(status))
    }
    const faults = envelope.errors ?? []
    const unknown = areUnknownNames(faults)
    // An unknown name is "not found" for the user (contract §8: exit 5), although it is a 400 on the wire.
    const code = status === 400 && unknown ? 'not_found' : codeOfStatus(status)
    const message = unknown ? foldUnknownNames(faults) : envelope.message
    return new RsmError(code, message, {
      fields: faults,
      ...(isObject(envelope.data) ? { data: envelope.data } : {}),
      ...(status === 401 && this.#token !== undefined
        ? { hint: `log in: rsm login ${this.url}, or set RSM_TOKEN` }
        : {}),
      ...(retryAfter === undefined ? {} : { retryAfter }),
    })
  }
}
