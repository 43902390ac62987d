import http from 'node:http'
import https from 'node:https'
import { text } from 'node:stream/consumers'
import tls from 'node:tls'
import { WebSocket } from 'ws'
import { RsmError } from '../../core/errors.ts'
import type { Api } from '../http/api.ts'
import type { Endpoint } from '../http/send.ts'
import { unreachable } from '../http/transport.ts'

const handshakeTimeout = 15_000
/** Larger than any frame of ours. */
const maxFrame = 8 * 1024 * 1024

type Connected = (error: Error | null, stream?: unknown) => void

/** Connections as those of `openTransport`: trusted, pinned, or through a proxy. */
async function openAgent({ url, caFile, tlsFingerprint }: Endpoint): Promise<http.Agent> {
  const base = new URL(url)
  const secure = base.protocol === 'https:'
  if (secure && tlsFingerprint !== undefined) {
    const { pin } = await import('../http/pinning.ts')
    const pinned = new https.Agent()
    pin(pinned, tlsFingerprint)
    return pinned
  }
  const { trustedCertificates } = await import('../../disk/trusted-certificates.ts')
  const trust = secure ? { ca: trustedCertificates(caFile) } : {}
  const agent = secure ? new https.Agent(trust) : new http.Agent()
  const { proxyFor } = await import('../http/proxy.ts')
  const proxy = proxyFor(base, process.env)
  if (proxy === undefined) return agent
  const { tunnel } = await import('../http/tunnel.ts')
  const host = base.hostname.replace(/^\[|\]$/g, '')
  const createConnection = (_: unknown, connected: Connected): undefined => {
    tunnel(proxy, host, Number(base.port) || (secure ? 443 : 80)).then((socket) => {
      if (!secure) {
        connected(null, socket)
        return
      }
      const servername = /^[\d.]+$|:/.test(host) ? '' : host
      const shielded = tls.connect({ socket, host, servername, ...trust })
      const failed = (error: Error) => connected(error)
      shielded.once('error', failed)
      shielded.once('secureConnect', () => {
        shielded.off('error', failed)
        connected(null, shielded)
      })
    }, connected)
  }
  Object.assign(agent, { createConnection })
  return agent
}

/**
 * A WebSocket of the server, with the client's token in a header. It is paused: `resume` it when somebody listens. An abort
 * of `signal` ends the attempt. Errors: what the server answered instead, or `unreachable`.
 */
export async function openSocket(
  endpoint: Endpoint & { readonly token?: string | undefined },
  api: Api,
  path: string,
  protocol: string,
  signal?: AbortSignal,
): Promise<WebSocket> {
  const agent = await openAgent(endpoint)
  const headers: Record<string, string> = { 'user-agent': 'rsm' }
  if (endpoint.token !== undefined) headers['authorization'] = `Bearer ${endpoint.token}`
  const socket = new WebSocket(endpoint.url.replace(/^http/, 'ws') + path, protocol, {
    agent,
    headers,
    handshakeTimeout,
    perMessageDeflate: false,
    maxPayload: maxFrame,
  })
  const giveUp = () => socket.terminate()
  signal?.addEventListener('abort', giveUp, { once: true })
  try {
    return await new Promise((resolve, reject) => {
      const failed = (error: Error) =>
        reject(error instanceof RsmError ? error : unreachable(endpoint.url, error))
      // It stays: whatever ends an open socket is told by its `close`.
      socket.on('error', failed)
      socket.once('open', () => {
        socket.pause()
        resolve(socket)
      })
      socket.once('unexpected-response', (request, response) => {
        const { statusCode = 0, headers: answered } = response
        text(response)
          .then((body) => reject(api.failure(statusCode, body, answered['retry-after'])))
          .catch(failed)
          // ws leaves the end of a refused handshake to whoever listens for it.
          .finally(() => request.destroy())
      })
    })
  } finally {
    signal?.removeEventListener('abort', giveUp)
  }
}
