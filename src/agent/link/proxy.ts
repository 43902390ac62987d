import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import { RsmError } from '../../core/errors.ts'

const connectTimeout = 30_000

function excluded(host: string, port: string, list: string): boolean {
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '*') return true
    const [, name = '', only] = /^\*?\.?(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
    if (name === '' || (only && only !== port)) return false
    return host === name || host.endsWith(`.${name}`)
  })
}

/** The proxy for a server's URL by HTTPS_PROXY, HTTP_PROXY and NO_PROXY, in either case; null means a direct way. */
export function proxyFor(url: URL, environment: Record<string, string | undefined>): URL | null {
  const read = (name: string) => environment[name.toLowerCase()] || environment[name] || ''
  const text = url.protocol === 'https:' ? read('HTTPS_PROXY') : read('HTTP_PROXY')
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  if (!text || excluded(url.hostname.toLowerCase(), port, read('NO_PROXY'))) return null
  const proxy = new URL(text.includes('://') ? text : `http://${text}`)
  if (proxy.protocol !== 'http:' && proxy.protocol !== 'https:')
    throw new RsmError('usage', `the proxy ${proxy.origin} is neither http:// nor https://`)
  return proxy
}

/** A socket through the proxy's CONNECT (RFC 9110 §9.3.6). Errors: `unreachable`. */
export function tunnel(proxy: URL, host: string, port: number): Promise<Socket> {
  const target = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const credentials = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
  const request = (proxy.protocol === 'https:' ? https : http).request({
    host: proxy.hostname,
    port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
    method: 'CONNECT',
    path: target,
    agent: false,
    timeout: connectTimeout,
    headers: {
      host: target,
      ...(proxy.username && {
        'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}`,
      }),
    },
  })
  return new Promise((resolve, reject) => {
    const refuse = (reason: string) =>
      reject(new RsmError('unreachable', `proxy ${proxy.host} for ${target}: ${reason}`))
    request.once('connect', (response, socket) => {
      if (response.statusCode === 200) return resolve(socket)
      socket.destroy()
      return refuse(`answered ${response.statusCode}`)
    })
    request.once('response', (response) => refuse(`answered ${response.statusCode}`))
    request.once('timeout', () => request.destroy(new Error('no answer')))
    request.once('error', (error) => refuse(error.message))
    request.end()
  })
}
