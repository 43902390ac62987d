import type { ExecutionContext } from 'ava'
import { type AgentOptions, type RunningAgent, startAgent } from '../../../src/agent/main.ts'
import type { TestServer } from '../servers/server.ts'
import { agentOptions, temporaryDirectory } from './agent.ts'

/** A real agent in this process, enrolled at a real server. */
export async function realAgent(
  t: ExecutionContext,
  server: TestServer,
  options: Partial<AgentOptions> = {},
): Promise<RunningAgent & { hostId: number }> {
  const { token } = await server.data('POST', '/api/enrollment-tokens', {})
  const dataDir = await temporaryDirectory(t)
  const agent = await startAgent({ ...agentOptions(server, dataDir), enrollToken: token, ...options })
  t.teardown(() => agent.stop())
  return agent as RunningAgent & { hostId: number }
}
