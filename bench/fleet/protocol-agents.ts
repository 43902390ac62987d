/**
 * Protocol-level agents, many per process: each links, says HELLO, and spawns scripts like a bare agent, so that only the
 * server and its protocol differ. Receives `{url, agents}`; sends `linked` when the server has admitted all.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { WebSocket } from 'ws'
import { type AgentHello, type ExecuteScript, type FromServer } from '../../src/core/protocol/messages.ts'
import { encode, subprotocol } from '../../src/core/protocol/wire-text.ts'
import type { RegisteredAgent } from '../rest/register.ts'

const hello: AgentHello = {
  agentVersion: '0.1.0',
  storeId: 'bench',
  capabilities: {
    maxExecutions: 16,
    scriptTypes: ['BASH'],
    containment: 'process-group',
    terminal: false,
  },
  tasks: [],
}

async function link(url: string, { agentId, token }: RegisteredAgent): Promise<void> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws/agent/${agentId}`, subprotocol, {
    headers: { authorization: `Bearer ${token}` },
    perMessageDeflate: false,
  })
  let messages = 0
  const now = () => new Date().toISOString()
  function execute({ taskId, script }: ExecuteScript): void {
    const startedAt = now()
    const began = performance.now()
    const child = spawn('bash', ['-c', script], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.on('close', (code) => {
      messages += 1
      const complete = {
        taskId,
        exitCode: code ?? 255,
        duration: Math.round(performance.now() - began),
        startedAt,
        completedAt: now(),
        status: code === 0 ? 'SUCCESS' : 'FAILED',
        lastSequence: -1,
      } as const
      socket.send(encode('SCRIPT_COMPLETE', complete, `a${messages}`, now()))
    })
  }
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as FromServer
    if (message.type === 'EXECUTE_SCRIPT') execute(message.payload)
  })
  socket.on('close', () => process.exit(0))
  await once(socket, 'open')
  socket.send(encode('AGENT_HELLO', hello, 'a0', now()))
}

process.on('disconnect', () => process.exit(0))
const [{ url, agents }] = (await once(process, 'message')) as [{ url: string; agents: RegisteredAgent[] }]
for (const agent of agents) await link(url, agent)
process.send?.('linked')
