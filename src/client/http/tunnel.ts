import type { Duplex } from 'node:stream'
import { Client } from 'undici'
import { RsmError } from '../../core/errors.ts'

/** A stream to `host:port` through the proxy's CONNECT (RFC 9110 §9.3.6). Errors: `unreachable`. */
export async function tunnel(proxy: string, host: string, port: number): Promise<Duplex> {
  const url = new URL(proxy.includes('://') ? proxy : `http://${proxy}`)
  const target = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
  const { statusCode, socket } = await new Client(url.origin).connect({
    path: target,
    headers: { host: target, ...(url.username === '' ? {} : { 'proxy-authorization': authorization }) },
  })
  if (statusCode === 200) return socket
  socket.destroy()
  throw new RsmError('unreachable', `cannot reach ${target}: the proxy ${url.host} answered ${statusCode}`)
}
