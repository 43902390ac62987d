import { Pool, ProxyAgent, request } from 'undici'
import { trustedCertificates } from '../../disk/trusted-certificates.ts'
import type { Endpoint, Send } from './send.ts'

/** Requests through a proxy; `answerTimeout` in milliseconds bounds its answer and that of the server behind it. */
export async function openProxied(
  endpoint: Endpoint,
  proxy: string,
  unreachable: (error: unknown) => Error,
  answerTimeout: number,
): Promise<Send> {
  const secure = endpoint.url.startsWith('https:')
  const dispatcher = new ProxyAgent({
    uri: proxy,
    clientFactory: (origin, options) => new Pool(origin, { ...options, headersTimeout: answerTimeout }),
    ...(secure ? { requestTls: { ca: trustedCertificates(endpoint.caFile) } } : {}),
  })
  const base = endpoint.url.replace(/\/$/, '')
  return async (outgoing) => {
    try {
      const answer = await request(base + outgoing.path, {
        dispatcher,
        method: outgoing.method as 'GET',
        headers: outgoing.headers,
        headersTimeout: answerTimeout,
        bodyTimeout: 0,
        ...(outgoing.body === undefined ? {} : { body: outgoing.body }),
        ...(outgoing.signal === undefined ? {} : { signal: outgoing.signal }),
      })
      return { status: answer.statusCode, headers: answer.headers, body: answer.body }
    } catch (error) {
      if (outgoing.signal?.aborted === true) throw error
      throw unreachable(error)
    }
  }
}
