import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { WebSocket, WebSocketServer } from 'ws'
import { createLog } from '../../../src/disk/log.ts'
import { AgentSocket } from '../../../src/server/listeners/agent-socket.ts'
import { createLinkBounds } from '../../../src/server/listeners/link-bounds.ts'

const idleTimeout = 300_000

/** A real link under a clock of the test; `peer` is the agent's end. */
async function linkUnderClock(t: ExecutionContext) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const peer = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const [socket] = (await once(server, 'connection')) as [WebSocket]
  await once(peer, 'open')
  t.teardown(() => {
    peer.terminate()
    server.close()
  })
  const clock = { at: 1_000_000, now: () => Date.now(), monotonic: () => clock.at }
  const events = {
    proven: () => undefined,
    hello: async () => undefined,
    message: async () => undefined,
    strayed: () => undefined,
    closed: () => undefined,
  }
  const link = new AgentSocket(
    socket,
    { hostId: 1, agentId: 'a', ofOurs: true },
    { clock, log: createLog('ERROR'), events, bounds: createLinkBounds() },
  )
  return { link, socket, peer, clock }
}

test('F11 a peer that answers no ping is given up within 45 s', async (t) => {
  const { link, socket, peer, clock } = await linkUnderClock(t)
  peer.pause()
  const closed = once(socket, 'close')
  for (let ticks = 0; ticks < 3; ticks += 1) {
    t.is(socket.readyState, WebSocket.OPEN)
    clock.at += 15_000
    link.tick(idleTimeout)
  }
  await closed
  t.is(socket.readyState, WebSocket.CLOSED)
})

test('F13 a server that was suspended pings its links before it gives them up', async (t) => {
  const { link, socket, peer, clock } = await linkUnderClock(t)
  const answered = once(peer, 'ping').then(() => once(socket, 'pong'))
  link.tick(idleTimeout)
  await answered
  clock.at += 120_000
  const again = once(socket, 'pong')
  link.tick(idleTimeout)
  await again
  clock.at += 15_000
  link.tick(idleTimeout)
  t.is(socket.readyState, WebSocket.OPEN)
})
