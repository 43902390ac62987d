import { type Inputs, useEffect, useRef, useState } from 'preact/hooks'
import { sanitizeLine } from '../cli/text/sanitize.ts'
import { allPages } from '../client/http/pages.ts'
import { codeOfStatus, type FieldFault, mendable, RsmError } from '../core/errors.ts'
import { longestSilence } from '../core/protocol/bounds.ts'
import type { Page } from '../core/protocol/http/common.ts'
import { shortened } from '../core/text/pieces.ts'
import { areUnknownNames, foldUnknownNames } from '../core/text/unknown-names.ts'
import { pause } from '../net/backoff.ts'
import { parseEnvelope } from '../net/envelope.ts'
import { followEvents, type ServerEvent } from '../net/event-stream.ts'
import { endSession, session } from './session.ts'

/** Characters of an error: a selector may cause thousands. */
const maxErrorText = 400

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

interface CallOptions {
  body?: unknown
  /** Raw body, instead of `body`. */
  bytes?: ArrayBuffer
  headers?: Record<string, string>
  signal?: AbortSignal
}

type Query = Record<string, string | number | boolean | undefined>

interface FollowOptions {
  signal: AbortSignal
  onEvent: (event: ServerEvent) => void
  onCut?: () => void
}

/** `path?a=1&b=2`, without undefined or empty values. */
export function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  return `${path}?${new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()}`
}

async function failure(response: Response): Promise<RsmError> {
  // The status is enough for the error page of a proxy.
  const { message = `The server answered ${response.status}`, errors = [] } =
    parseEnvelope(await response.text().catch(() => '')) ?? {}
  return new RsmError(codeOfStatus(response.status), message, { fields: errors })
}

/** Sends the session's token; rejects with an RsmError. Relative paths, so that a proxy's prefix works. */
export async function send(method: Method, path: string, options: CallOptions = {}): Promise<Response> {
  const token = session.get()?.token
  const { body, bytes, headers, signal } = options
  let response: Response
  try {
    response = await fetch(path, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(bytes === undefined ? {} : { 'content-type': 'application/octet-stream' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(bytes === undefined ? {} : { body: bytes }),
      ...(signal === undefined ? {} : { signal }),
      cache: 'no-store',
    })
  } catch (error) {
    if (signal?.aborted === true) throw error
    throw new RsmError('unreachable', 'The server can’t be reached', { cause: error })
  }
  if (response.ok) return response
  // A late 401 must not sign out a user who has signed in since.
  if (response.status === 401 && token !== undefined && session.get()?.token === token)
    endSession('Your session has ended. Sign in again.')
  throw await failure(response)
}

export async function call<T>(method: Method, path: string, options: CallOptions = {}): Promise<T> {
  const response = await send(method, path, options)
  return ((await response.json()) as { data: T }).data
}

/** All records of a list, page by page, up to `most`. */
export async function all<T>(path: string, query: Query = {}, most = 20_000): Promise<T[]> {
  const read = (page: Query) => call<Page<T>>('GET', withQuery(path, page))
  return (await allPages(read, query, most)).content
}

export const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-')

/** An error for people: unknown names under one heading, other faults once each. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const fields = error instanceof RsmError ? error.fields : []
  if (fields.length === 0) return sanitizeLine(error.message)
  const text = areUnknownNames(fields)
    ? foldUnknownNames(fields)
    : [...new Set(fields.map(fieldText))].join('; ')
  return shortened(sanitizeLine(text), maxErrorText)
}

/** `selector: no such host: web9`: shortens a field's path to its name in the form. */
const fieldText = ({ field, message }: FieldFault) => {
  const name = field.replace(/^(target|script|params|secretParams)\./, '')
  return name === '' ? message : `${name}: ${message}`
}

/**
 * Follows an event stream until `signal` aborts; after a lost connection resumes after the last ID. Uses
 * fetch, because EventSource cannot send a token. Rejects with errors that retries cannot fix.
 */
export async function followStream(path: string, { signal, onEvent, onCut }: FollowOptions): Promise<void> {
  const open = async (lastId: string | undefined) => pieces(path, lastId, signal)
  const options = { signal, retryFor: Number.POSITIVE_INFINITY, onCut: () => onCut?.() }
  try {
    for await (const event of followEvents(open, 'the server', options, (cut) => cut)) {
      if (signal.aborted) return
      onEvent(event)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** Bytes of a stream. Aborts it when it is silent; a slow consumer does not count as silence. */
async function* pieces(path: string, lastId: string | undefined, signal: AbortSignal) {
  const controller = new AbortController()
  const abort = () => controller.abort()
  const inTime = async <T>(work: Promise<T> | undefined): Promise<T | undefined> => {
    const quiet = setTimeout(abort, longestSilence)
    try {
      return await work
    } finally {
      clearTimeout(quiet)
    }
  }
  const resume: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId }
  const headers = { accept: 'text/event-stream', ...resume }
  signal.addEventListener('abort', abort)
  try {
    const response = await inTime(send('GET', path, { headers, signal: controller.signal }))
    const reader = response?.body?.getReader()
    for (;;) {
      const piece = await inTime(reader?.read())
      if (piece?.value === undefined) return
      yield piece.value
    }
  } finally {
    signal.removeEventListener('abort', abort)
    abort()
  }
}

/** Milliseconds between two polls of data without events. */
const pollInterval = 5_000

interface Read<T> {
  /** Undefined before the first answer. */
  value: T | undefined
  fault: string
}

interface Polled<T> extends Read<T> {
  again: () => void
}

/** Polls `read`, and restarts when `inputs` change. Keeps the last value while disconnected. */
export function usePolled<T>(read: () => Promise<T>, inputs: Inputs): Polled<T> {
  const [known, setKnown] = useState<Read<T>>({ value: undefined, fault: '' })
  const wake = useRef(() => {})
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    let rest = controller
    async function poll(): Promise<void> {
      try {
        const value = await read()
        if (!signal.aborted) setKnown({ value, fault: '' })
      } catch (error) {
        const fault = errorText(error)
        const isKept = mendable(error)
        if (!signal.aborted) setKnown(({ value }) => ({ value: isKept ? value : undefined, fault }))
      }
    }
    async function follow(): Promise<void> {
      while (!signal.aborted) {
        // Created before the read, because data requested during it may be newer than its answer.
        rest = new AbortController()
        const woken = rest.signal
        await poll()
        if (!signal.aborted) await pause(pollInterval, woken)
      }
    }
    wake.current = () => rest.abort()
    void follow()
    return () => {
      controller.abort()
      rest.abort()
    }
  }, inputs)
  return { ...known, again: () => wake.current() }
}
