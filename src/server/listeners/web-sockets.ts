import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { pingInterval } from '../../core/protocol/bounds.ts'
import { bearer } from '../http/auth.ts'
import { asksForWebSocket, declineUpgrade } from '../http/declined-upgrade.ts'
import type { Caller } from '../storage/ports/caller.ts'
import { type AgentListener, createAgentListener } from './agent-listener.ts'
import type { WebSocketDependencies } from './dependencies.ts'
import { createTerminalListener, isTerminalPath } from './terminal-listener.ts'

/** Owns every WebSocket of the server. */
export interface WebSockets extends Pick<AgentListener, 'load' | 'shed'> {
  attach(server: Server): void
  /** Closes all links with 1001. */
  close(): void
}

export function createWebSockets(deps: WebSocketDependencies): WebSockets {
  const callerOf = async ({ headers }: IncomingMessage): Promise<Caller | undefined> => {
    const token = bearer(headers.authorization)
    return token === undefined ? undefined : deps.credentials(token)
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
        if (isTerminalPath(request.url)) void clients.admit(request, socket, head)
        else agents.admit(request, socket, head)
      })
    },
    close() {
      clearInterval(ticking)
      // Before the links: no client need hear that its host is away.
      clients.close()
      agents.close()
    },
  }
}
