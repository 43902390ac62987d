import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'

/** Whether a request asks for a WebSocket, and at a path that has them. */
export function asksForWebSocket({ headers, url = '' }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket' && url.startsWith('/ws/')
}

/**
 * Answers a request as if it had not asked to upgrade, as RFC 9110 §7.8 wants it: `Upgrade: h2c`, which Java's client and curl
 * send along, is an offer. Node hands over the socket and stops reading its requests; so the request goes back, without
 * the offer, and the socket begins anew. (`shouldUpgradeCallback` does this, from Node 24.9 on.)
 */
export function declineUpgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`]
  const { rawHeaders } = request
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    const value = rawHeaders[index + 1] ?? ''
    if (/^(?:upgrade|http2-settings)$/i.test(name)) continue
    if (!/^connection$/i.test(name)) lines.push(`${name}: ${value}`)
    else {
      const kept = value.split(',').filter((word) => !/^\s*(?:upgrade|http2-settings)\s*$/i.test(word))
      if (kept.length > 0) lines.push(`${name}: ${kept.join(',')}`)
    }
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  server.emit(socket instanceof TLSSocket ? 'secureConnection' : 'connection', socket)
}
