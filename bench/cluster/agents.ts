/**
 * Protocol-level agents of a large fleet: each links, says HELLO, sends heartbeats, and ends every execution at once. A lost
 * link is opened again after an agent's backoff, to another server. Like a journal, each agent keeps an end until it is
 * acknowledged, names it in every HELLO, and repeats it when the server asks. Receives one `FleetOrder`; sends `FleetState`
 * every 200 ms.
 */
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { WebSocket } from 'ws'
import { agentBackoff } from '../../src/agent/link/backoff.ts'
import type { AgentHello, FromServer, ScriptComplete } from '../../src/core/protocol/messages.ts'
import { encode, subprotocol } from '../../src/core/protocol/wire-text.ts'
import { heartbeat, type RegisteredAgent } from '../rest/register.ts'

/** `urls`: of all servers; agent N starts with server N modulo their number. `from`: the agents' local address. */
export interface FleetOrder {
  urls: readonly string[]
  from: string
  agents: readonly RegisteredAgent[]
  /** Milliseconds. */
  heartbeatInterval: number
  /** Number of links that are opened at once. */
  together: number
}

export interface FleetState {
  open: number
  /**
   * Frames of executions, and repeated ones; a server never sends an execution again that a HELLO names, so `twice` stays 0.
   */
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

/** As with an agent, a heartbeat waits for the previous response: late ones are skipped and never pile up. */
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
  // A lost heartbeat is followed by the next one an interval later.
  asked.on('error', () => undefined)
  asked.on('close', () => beating.delete(agent))
  asked.end(JSON.stringify(heartbeat(agent)))
}

/** Starts the heartbeats of an agent; the agents are spread over the interval. */
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

/** Resolves when the link is open or has failed for the first time. */
function link(agent: RegisteredAgent, at: number): Promise<void> {
  const backoff = agentBackoff(Math.random)
  const seen = new Set<string>()
  /** Ends that are not acknowledged. */
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
    // Rarely, because both ends share the processor here: just often enough that no server considers the link idle (contract
    // §6).
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
