import { EnvHttpProxyAgent, request } from 'undici'
import { trustedCertificates } from '../../disk/trusted-certificates.ts'
import type { Endpoint, Send } from './transport.ts'

/** Requests through the proxy that the environment names. */
export async function openProxied(
  endpoint: Endpoint,
  unreachable: (url: string, error: unknown) => Error,
): Promise<Send> {
  const secure = endpoint.url.startsWith('https:')
  const dispatcher = new EnvHttpProxyAgent(
    secure ? { requestTls: { ca: trustedCertificates(endpoint.caFile) } } : {},
  )
  const base = endpoint.url.replace(/\/$/, '')
  return async (outgoing) => {
    try {
      const answer = await request(base + outgoing.path, {
        dispatcher,
        method: outgoing.method as 'GET',
        headers: outgoing.headers,
        bodyTimeout: 0,
        ...(outgoing.body === undefined ? {} : { body: outgoing.body }),
        ...(outgoing.signal === undefined ? {} : { signal: outgoing.signal }),
      })
      return { status: answer.statusCode, headers: answer.headers, body: answer.body }
    } catch (error) {
      if (outgoing.signal?.aborted === true) throw error
      throw unreachable(endpoint.url, error)
    }
  }
}
