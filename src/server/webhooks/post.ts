import { once } from 'node:events'
import {
  type IncomingMessage,
  Agent as PlainAgent,
  request as plainRequest,
  type RequestOptions,
} from 'node:http'
import { Agent, request as tlsRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import { firstError } from '../../core/errors.ts'
import { serverVersion } from '../../disk/own-release.ts'
import {
  type Judge,
  type JudgedAddress,
  judgedAddresses,
  type Resolve,
  systemResolve,
  type WebhookAllowance,
} from './judge.ts'

/** Milliseconds from the DNS lookup to the end of the response (contract §16). */
const longestTry = 10_000
/** Bytes read of a response. */
const mostRead = 64 * 1024
/** Milliseconds that an idle connection is kept. */
const keptFor = 4_000

/** Result of one attempt; `error` is null on success. */
export interface Outcome {
  readonly status: number | null
  readonly error: string | null
}

export interface Sending {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Post {
  /** Never rejects. Null if `stop` aborted it. */
  (sending: Sending, stop: AbortSignal): Promise<Outcome | null>
  close(): void
}

/** Lookup for sockets that returns the validated addresses, without DNS. */
const answering =
  (addresses: readonly JudgedAddress[]): LookupFunction =>
  (_, { all }, done) => {
    const [first] = addresses
    if (all) done(null, [...addresses])
    else done(null, first?.address ?? '', first?.family ?? 0)
  }

/** Reads a response up to a limit: a connection read to its end can be reused. */
async function readSome(answer: IncomingMessage): Promise<void> {
  let bytes = 0
  for await (const chunk of answer) {
    bytes += (chunk as Buffer).length
    if (bytes > mostRead) return
  }
}

const verdict = (status: number): string | null =>
  status >= 200 && status < 300
    ? null
    : status >= 300 && status < 400
      ? `the receiver answered ${status}: redirects are not followed`
      : `the receiver answered ${status}`

function unusedProxy(variable: string | undefined): string {
  return variable === undefined
    ? ''
    : `; webhooks do not use ${variable}: let the server connect directly, or allow a relay in its network with --webhook-allow`
}

/** Sends to webhooks: only to validated addresses, with TLS verified, without proxies or redirects. */
export function createPost(
  judge: Judge,
  resolve: Resolve = systemResolve,
  proxyVariable: WebhookAllowance['proxyVariable'] = () => undefined,
): Post {
  const agents = {
    'http:': new PlainAgent({ keepAlive: true, timeout: keptFor }),
    'https:': new Agent({ keepAlive: true, timeout: keptFor }),
  }

  /** Resolves when the response is read; `heard` gets its status before. Rejects if there is none. */
  async function ask(
    url: URL,
    options: RequestOptions,
    body: string,
    heard: (status: number) => void,
  ): Promise<void> {
    const asking = url.protocol === 'https:' ? tlsRequest(url, options) : plainRequest(url, options)
    // Ignore errors after the response.
    asking.on('error', () => undefined)
    asking.end(body)
    let answer: IncomingMessage
    try {
      ;[answer] = (await once(asking, 'response')) as [IncomingMessage]
    } catch (error) {
      // The receiver may have just closed the kept-alive connection.
      const isStale = asking.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET'
      if (isStale) return ask(url, { ...options, agent: false }, body, heard)
      throw error
    }
    heard(answer.statusCode ?? 0)
    await readSome(answer)
  }

  async function attempt(
    { url: text, headers, body }: Sending,
    signal: AbortSignal,
    found: () => void,
    heard: (status: number) => void,
  ): Promise<void> {
    const url = new URL(text)
    const addresses = await judgedAddresses({ judge, resolve }, url, signal)
    found()
    if (signal.aborted) return
    const options: RequestOptions & { rejectUnauthorized: true } = {
      method: 'POST',
      agent: agents[url.protocol as keyof typeof agents],
      lookup: answering(addresses),
      rejectUnauthorized: true,
      signal,
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': `rsm/${serverVersion()}`,
        ...headers,
      },
    }
    await ask(url, options, body, heard)
  }

  async function post(sending: Sending, stop: AbortSignal): Promise<Outcome | null> {
    const over = new AbortController()
    const end = () => over.abort()
    const timer = setTimeout(end, longestTry)
    stop.addEventListener('abort', end)
    let status: number | null = null
    let late = 'the name could not be looked up in time'
    const found = () => {
      late = `no answer within ${longestTry / 1000} s`
    }
    try {
      const trying = attempt(sending, over.signal, found, (heard) => {
        status = heard
      })
      // DNS lookups cannot be aborted.
      await Promise.race([trying, once(over.signal, 'abort').then(() => undefined)])
    } catch (error) {
      if (status === null && !over.signal.aborted) {
        const { message, cause = firstError(error) } = firstError(error) as Error
        // Network codes only, because a proxy would not help with faults of TLS, HTTP or validation.
        const isOfNetwork = /^E(?!PROTO)[A-Z]+(?:_AGAIN)?$/.test(
          String((cause as NodeJS.ErrnoException).code),
        )
        return {
          status,
          error: message + (isOfNetwork ? unusedProxy(proxyVariable(new URL(sending.url))) : ''),
        }
      }
    } finally {
      clearTimeout(timer)
      stop.removeEventListener('abort', end)
    }
    // Only the status counts, even if the response is cut off.
    if (status !== null) return { status, error: verdict(status) }
    return stop.aborted ? null : { status, error: late + unusedProxy(proxyVariable(new URL(sending.url))) }
  }

  return Object.assign(post, {
    close() {
      for (const agent of Object.values(agents)) agent.destroy()
    },
  })
}
