import type {
  CopyFile,
  ExecuteScript,
  FetchFile,
  ScriptComplete,
} from '../../../src/core/protocol/messages.ts'
import type { Phase } from '../../../src/core/tasks/gates.ts'
import type { TestServer } from '../servers/server.ts'
import { ScriptedAgent } from './scripted-agent.ts'

interface Run {
  readonly exitCode?: number
  readonly output?: readonly (readonly [stream: 'stdout' | 'stderr', data: string, phase?: Phase])[]
  /** Further fields of its end. */
  readonly end?: Partial<ScriptComplete>
  /** True for a script that runs until `end`. */
  readonly goesOn?: boolean
}

/** A host whose agent implements the protocol only. */
export interface SimulatedHost {
  readonly hostId: number
  readonly name: string
  readonly agent: ScriptedAgent
  /** Sends output of a running script. */
  write(taskId: string, data: string, stream?: 'stdout' | 'stderr', phase?: Phase): void
  end(taskId: string, exitCode?: number, more?: Partial<ScriptComplete>): void
}

/** Number of hosts that register and link at once. */
const together = 20

/** Links hosts of these names; each handles executions as `run` answers, and files as `copied` does. */
export async function simulateFleet(
  server: TestServer,
  names: readonly string[],
  run: (name: string, script: ExecuteScript) => Run = () => ({}),
  copied: (name: string, order: CopyFile | FetchFile) => Partial<ScriptComplete> = () => ({}),
): Promise<SimulatedHost[]> {
  const enrollment = await server.data('POST', '/api/enrollment-tokens', { maxUses: names.length })
  async function join(name: string): Promise<SimulatedHost> {
    const agentId = `agent-${name}`
    const body = {
      agentId,
      hostname: name,
      ipAddresses: ['127.0.0.1'],
      os: 'linux',
      arch: 'x64',
      agentVersion: 'test',
    }
    const bearer = { authorization: `Bearer ${enrollment.token}` }
    const answer = await server.api('POST', '/api/agent/register', body, bearer)
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
    const { hostId, token } = answer.body.data
    const identity = { hostId, agentId, token }
    const agent = await ScriptedAgent.link(server, identity, { capabilities: { files: true, gates: true } })
    agent.serveCopies(server, identity, (order) => copied(name, order))
    const sequences = new Map<string, number>()
    const host: SimulatedHost = {
      hostId,
      name,
      agent,
      write(taskId, data, stream = 'stdout', phase) {
        const sequence = sequences.get(taskId) ?? 0
        sequences.set(taskId, sequence + 1)
        agent.send('SCRIPT_OUTPUT', { taskId, stream, data, sequence, ...(phase && { phase }) })
      },
      end(taskId, exitCode = 0, more = {}) {
        agent.complete(taskId, exitCode, { lastSequence: (sequences.get(taskId) ?? 0) - 1, ...more })
      },
    }
    agent.socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as { type: string; payload: ExecuteScript }
      if (message.type === 'CANCEL_SCRIPT')
        agent.complete(message.payload.taskId, 143, {
          status: 'CANCELLED',
          lastSequence: (sequences.get(message.payload.taskId) ?? 0) - 1,
        })
      if (message.type !== 'EXECUTE_SCRIPT') return
      const { taskId } = message.payload
      const { exitCode = 0, output = [], end, goesOn = false } = run(name, message.payload)
      for (const [stream, text, phase] of output) host.write(taskId, text, stream, phase)
      if (!goesOn) host.end(taskId, exitCode, end)
    })
    return host
  }
  const hosts: SimulatedHost[] = []
  for (let from = 0; from < names.length; from += together)
    hosts.push(...(await Promise.all(names.slice(from, from + together).map(join))))
  return hosts
}
