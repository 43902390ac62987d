/**
 * A part of a fleet as the server's network sees it: each agent links, says HELLO, sends a heartbeat every 30 s, and reconnects
 * after an agent's backoff when its link is lost or refused. Receives one `HerdOrder`; sends the number of open links whenever
 * it changes.
 */
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { WebSocket } from 'ws'
import { type AgentBackoff, agentBackoff } from '../../src/agent/link/backoff.ts'
import { type AgentHello } from '../../src/core/protocol/messages.ts'
import { encode, subprotocol } from '../../src/core/protocol/wire-text.ts'
import { heartbeat, type RegisteredAgent } from '../rest/register.ts'
import type { HerdOrder } from './generator.ts'

const heartbeatInterval = 30_000
const tellInterval = 20

const hello: AgentHello = {
  agentVersion: '0.1.0',
  storeId: 'herd',
  capabilities: { maxExecutions: 16, scriptTypes: ['BASH'], containment: 'process-group', terminal: false },
  tasks: [],
}

process.on('disconnect', () => process.exit(0))
const [{ url, from, agents }] = (await once(process, 'message')) as [HerdOrder]
const http = new Agent({ keepAlive: true, maxSockets: 32, localAddress: from })
let open = 0
let told = -1

setInterval(() => {
  if (open === told) return
  told = open
  process.send?.(open)
}, tellInterval)

function beat(agent: RegisteredAgent): void {
  const headers = { authorization: `Bearer ${agent.token}`, 'content-type': 'application/json' }
  const asked = request(`${url}/api/agent/heartbeat`, { method: 'POST', agent: http, headers }, (response) =>
    response.resume(),
  )
  // A lost heartbeat is followed by the next one 30 s later.
  asked.on('error', () => undefined)
  asked.end(JSON.stringify(heartbeat(agent)))
}

function link(agent: RegisteredAgent, backoff: AgentBackoff): void {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws/agent/${agent.agentId}`, subprotocol, {
    headers: { authorization: `Bearer ${agent.token}` },
    perMessageDeflate: false,
    localAddress: from,
  })
  let isOpen = false
  socket.on('open', () => {
    isOpen = true
    open++
    backoff.reset()
    socket.send(encode('AGENT_HELLO', hello, 'a0', new Date().toISOString()))
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    if (isOpen) open--
    setTimeout(() => link(agent, backoff), backoff.next())
  })
}

for (const agent of agents) {
  link(agent, agentBackoff(Math.random))
  setTimeout(() => setInterval(() => beat(agent), heartbeatInterval), Math.random() * heartbeatInterval)
}
