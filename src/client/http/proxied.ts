import { Pool, ProxyAgent, request } from 'undici'
import { trustedCertificates } from '../../disk/trusted-certificates.ts'
import type { Endpoint, Send } from './send.ts'

/** In milliseconds: until the answer of the proxy, and that of the server behind it, begins; and within it until more comes. */
interface Patience {
  readonly answer: number
  readonly silence: number
}

/** Requests through a proxy. */
export async function openProxied(
  endpoint: Endpoint,
  proxy: string,
  unreachable: (error: unknown) => Error,
  patience: Patience,
): Promise<Send> {
  const secure = endpoint.url.startsWith('https:')
  const dispatcher = new ProxyAgent({
    uri: proxy,
    clientFactory: (origin, options) => new Pool(origin, { ...options, headersTimeout: patience.answer }),
    ...(secure ? { requestTls: { ca: trustedCertificates(endpoint.caFile) } } : {}),
  })
  const base = endpoint.url.replace(/\/$/, '')
  return async (outgoing) => {
    try {
      const answer = await request(base + outgoing.path, {
        dispatcher,
        method: outgoing.method as 'GET',
        headers: outgoing.headers,
        headersTimeout: patience.answer,
        bodyTimeout: patience.silence,
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
