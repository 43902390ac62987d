import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { pingInterval } from '../../core/protocol/bounds.ts'
import { refuseUpgrade } from '../http/answers.ts'
import { bearer } from '../http/auth.ts'
import type { Caller } from '../storage/ports/caller.ts'
import { relayPath } from '../terminals/relay/channel.ts'
import type { ServerRelay } from '../terminals/relay/relay.ts'
import { type AgentListener, createAgentListener } from './agent-listener.ts'
import type { WebSocketDependencies } from './dependencies.ts'
import { createTerminalListener, isTerminalPath } from './terminal-listener.ts'

/** Owns all WebSockets of the server. */
export interface WebSockets extends Pick<AgentListener, 'load' | 'shed'> {
  attach(server: Server): void
  /** Closes all of them with 1001. */
  close(): void
}

export function createWebSockets(deps: WebSocketDependencies): WebSockets {
  const { relay } = deps
  const callerOf = async ({ headers }: IncomingMessage): Promise<Caller | undefined> => {
    const token = bearer(headers.authorization)
    return token === undefined ? undefined : deps.credentials(token)
  }
  async function acceptServer(relay: ServerRelay, request: IncomingMessage, socket: Duplex, head: Buffer) {
    try {
      relay.accept(request, socket, head)
    } catch (error) {
      await deps.refused(request, undefined, error).catch(() => undefined)
      refuseUpgrade(socket, error)
    }
  }
  const agents = createAgentListener(deps, callerOf)
  const clients = createTerminalListener({ ...deps, callerOf })
  const ticking = setInterval(
    () => {
      agents.tick()
      clients.tick()
    },
    Math.min(pingInterval, Math.max(250, (deps.wsIdleTimeout * 1000) / 4)),
  )
  ticking.unref()
  return {
    load: () => agents.load(),
    shed: (share) => agents.shed(share),
    attach(server) {
      server.on('upgrade', (request, socket: Duplex, head: Buffer) => {
        if (!asksForWebSocket(request)) return declineUpgrade(server, request, socket, head)
        socket.on('error', () => socket.destroy())
        if (relay && request.url === relayPath) void acceptServer(relay, request, socket, head)
        else if (isTerminalPath(request.url)) void clients.admit(request, socket, head)
        else agents.admit(request, socket, head)
      })
    },
    close() {
      clearInterval(ticking)
      // Clients first, so that they are not notified of disconnected hosts.
      clients.close()
      relay?.close()
      agents.close()
    },
  }
}

function asksForWebSocket({ headers, url = '' }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket' && url.startsWith('/ws/')
}

/**
 * Answers a request as if it did not ask to upgrade (RFC 9110 §7.8): `Upgrade: h2c`, which curl and Java's
 * client send, is only an offer. Node hands over the socket and stops parsing it, so the request is put back
 * without the offer and the socket starts again. (From Node 24.9 on, `shouldUpgradeCallback` does this.)
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
