import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ExecutionContext } from 'ava'
import { WebSocket, WebSocketServer } from 'ws'
import { type Payloads } from '../../../src/core/protocol/messages.ts'
import { subprotocol } from '../../../src/core/protocol/wire-text.ts'

export interface Frame {
  type: string
  id: string
  timestamp: string
  payload: Record<string, unknown>
}

/** An attacker between an agent and its server without TLS: reads, changes, holds back and adds frames. */
export interface FrameRelay {
  readonly url: string
  /** Every frame from the server, in order. */
  readonly fromServer: Frame[]
  /** Replaces a frame by others; passes every frame by default. */
  change: (frame: Frame, to: 'agent' | 'server') => readonly Frame[]
  /** Sends the agent a frame of the relay's own. */
  inject<T extends keyof Payloads>(type: T, payload: Payloads[T]): void
  resend(frame: Frame): void
  /** Ends all links. */
  cut(): void
}

export async function startFrameRelay(t: ExecutionContext, target: string): Promise<FrameRelay> {
  const agents = new Set<WebSocket>()
  const proxy = http.createServer((request, response) => {
    const { method, headers, url } = request
    const onwards = http.request(new URL(url ?? '/', target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onwards.on('error', () => response.destroy())
    request.pipe(onwards)
  })
  const links = new WebSocketServer({ server: proxy, handleProtocols: () => subprotocol })
  links.on('connection', (agent, { url, headers }) => {
    const { authorization = '' } = headers
    const address = new URL(url ?? '/', target.replace('http', 'ws'))
    const server = new WebSocket(address, [subprotocol], { headers: { authorization } })
    const opened = once(server, 'open')
    agents.add(agent)
    const pass = async (data: Buffer, to: 'agent' | 'server') => {
      const frame = JSON.parse(data.toString()) as Frame
      if (to === 'agent') relay.fromServer.push(frame)
      if (to === 'server') await opened
      for (const each of relay.change(frame, to)) (to === 'agent' ? agent : server).send(JSON.stringify(each))
    }
    agent.on('message', (data: Buffer) => void pass(data, 'server'))
    server.on('message', (data: Buffer) => void pass(data, 'agent'))
    for (const [socket, other] of [
      [agent, server],
      [server, agent],
    ] as const) {
      socket.on('error', () => other.terminate())
      socket.on('close', () => {
        agents.delete(agent)
        other.terminate()
      })
    }
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  let ids = 0
  const relay: FrameRelay = {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    fromServer: [],
    change: (frame) => [frame],
    inject(type, payload) {
      const timestamp = new Date().toISOString()
      relay.resend({ type, id: `relay${ids++}`, timestamp, payload: { ...payload } })
    },
    resend(frame) {
      for (const agent of agents) agent.send(JSON.stringify(frame))
    },
    cut() {
      for (const agent of agents) agent.terminate()
    },
  }
  t.teardown(async () => {
    relay.cut()
    links.close()
    proxy.closeAllConnections()
    await new Promise((resolve) => proxy.close(resolve))
  })
  return relay
}
