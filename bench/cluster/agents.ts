/**
 * Agents of a large fleet at the level of the protocol: each links, says HELLO, sends heartbeats, and ends what it is sent at
 * once. A link that falls comes back after an agent's backoff, to another server. As a journal would, each keeps an end until
 * it is acknowledged, names it in every HELLO, and repeats it when the server asks. Sent one `FleetOrder`; answers
 * `FleetState` each 200 ms.
 */
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { WebSocket } from 'ws'
import { agentBackoff } from '../../src/agent/link/backoff.ts'
import type { AgentHello, FromServer, ScriptComplete } from '../../src/core/protocol/messages.ts'
import { encode, subprotocol } from '../../src/core/protocol/wire-text.ts'
import { heartbeat, type RegisteredAgent } from '../rest/register.ts'

/** `urls`: of all servers; agent N begins with the server N modulo their number. `from`: the address that they connect from. */
export interface FleetOrder {
  urls: readonly string[]
  from: string
  agents: readonly RegisteredAgent[]
  /** Milliseconds. */
  heartbeatInterval: number
  /** Links that are opened at once. */
  together: number
}

export interface FleetState {
  open: number
  /** Frames of executions, and those of what the agent had: what a HELLO names is never sent again, so there are none. */
  frames: number
  twice: number
  beats: number
}

const helloOf = (ends: Iterable<string>): AgentHello => ({
  agentVersion: '0.1.0',
  storeId: 'fleet',
  capabilities: { maxExecutions: 16, scriptTypes: ['BASH'], containment: 'process-group', terminal: false },
  tasks: Array.from(ends, (taskId) => ({ taskId, state: 'EXITED', lastSequence: -1 })),
})

/** Milliseconds. */
const pingEvery = 120_000

process.on('disconnect', () => process.exit(0))
const [{ urls, from, agents, heartbeatInterval, together }] = (await once(process, 'message')) as [FleetOrder]
const http = new Agent({ keepAlive: true, maxSockets: 16, localAddress: from })
const state: FleetState = { open: 0, frames: 0, twice: 0, beats: 0 }
const now = () => new Date().toISOString()

setInterval(() => process.send?.(state), 200)

/** As an agent does, the next one waits for the answer: what is late is left out, and piles up nowhere. */
const beating = new Set<RegisteredAgent>()

function beat(agent: RegisteredAgent, url: string): void {
  if (beating.has(agent)) return
  beating.add(agent)
  const headers = { authorization: `Bearer ${agent.token}`, 'content-type': 'application/json' }
  const options = { method: 'POST', agent: http, headers }
  const asked = request(`${url}/api/agent/heartbeat`, options, (response) => {
    if (response.statusCode === 200) state.beats++
    response.resume()
  })
  // Whoever can't be heard now is heard one interval later.
  asked.on('error', () => undefined)
  asked.on('close', () => beating.delete(agent))
  asked.end(JSON.stringify(heartbeat(agent)))
}

/** All of them, spread over the interval. */
function beatFrom(agent: RegisteredAgent, at: number): void {
  const url = urls[at % urls.length] ?? ''
  const begin = () => {
    beat(agent, url)
    setInterval(() => beat(agent, url), heartbeatInterval)
  }
  setTimeout(begin, (at / agents.length) * heartbeatInterval)
}

function endOf(taskId: string): ScriptComplete {
  const at = now()
  return {
    taskId,
    exitCode: 0,
    duration: 1,
    startedAt: at,
    completedAt: at,
    status: 'SUCCESS',
    lastSequence: -1,
  }
}

/** Settles when the link is open, or has failed for the first time. */
function link(agent: RegisteredAgent, at: number): Promise<void> {
  const backoff = agentBackoff(Math.random)
  const seen = new Set<string>()
  /** Those that are not acknowledged. */
  const ends = new Map<string, ScriptComplete>()
  let turn = at
  let settle = () => {}
  const settled = new Promise<void>((resolve) => {
    settle = resolve
  })
  const open = () => {
    const url = urls[turn % urls.length] ?? ''
    const socket = new WebSocket(`${url.replace('http', 'ws')}/ws/agent/${agent.agentId}`, subprotocol, {
      headers: { authorization: `Bearer ${agent.token}` },
      perMessageDeflate: false,
      localAddress: from,
    })
    let isOpen = false
    const sendEnd = (end: ScriptComplete) =>
      socket.send(encode('SCRIPT_COMPLETE', end, `a${state.frames}`, now()))
    socket.on('open', () => {
      isOpen = true
      state.open++
      backoff.reset()
      socket.send(encode('AGENT_HELLO', helloOf(ends.keys()), 'a0', now()))
      settle()
    })
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as FromServer
      if (message.type === 'SCRIPT_ACK') {
        const { taskId, complete } = message.payload
        const end = ends.get(taskId)
        if (complete) ends.delete(taskId)
        else if (end) sendEnd(end)
      }
      if (message.type !== 'EXECUTE_SCRIPT') return
      const { taskId } = message.payload
      state.frames++
      if (seen.has(taskId)) state.twice++
      seen.add(taskId)
      const end = endOf(taskId)
      ends.set(taskId, end)
      sendEnd(end)
    })
    socket.on('error', () => undefined)
    // Seldom, for both ends share the processor here: just so that no server takes the link for an idle one (contract §6).
    const pinging = setInterval(() => {
      if (isOpen) socket.ping()
    }, pingEvery)
    socket.on('close', () => {
      clearInterval(pinging)
      if (isOpen) state.open--
      settle()
      turn++
      setTimeout(open, backoff.next())
    })
  }
  open()
  return settled
}

const waiting = agents.entries()
await Promise.all(
  Array.from({ length: together }, async () => {
    for (const [at, agent] of waiting) {
      await link(agent, at)
      beatFrom(agent, at)
    }
  }),
)
