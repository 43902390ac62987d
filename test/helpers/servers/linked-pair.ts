import type { ChildProcess } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import type { AgentOptions } from '../../../src/agent/main.ts'
import { temporaryDirectory } from '../agents/agent.ts'
import { agentProcess } from '../agents/agent-process.ts'
import type { TestServer } from './server.ts'
import { type ServerProcess, startServerProcess } from './server-process.ts'

/** A real server and a real agent, each a process of its own, and a directory for traces of scripts. */
export interface LinkedPair {
  server: ServerProcess
  hostId: number
  /** A directory for scripts: gates and counters. */
  traces: string
  /** Starts the agent, or the next one on the same directory. */
  startAgent(options?: Partial<AgentOptions>): Promise<ChildProcess>
}

/** `via`: maps the server's URL to the one that the agent gets. */
export async function startPair(
  t: ExecutionContext,
  via: (url: string) => Promise<string> = (url) => Promise.resolve(url),
): Promise<LinkedPair & { agent: ChildProcess }> {
  const server = await startServerProcess(t)
  const dataDir = await temporaryDirectory(t)
  const traces = await temporaryDirectory(t)
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', {})
  const url = await via(server.url)
  const startAgent = (options: Partial<AgentOptions> = {}) =>
    agentProcess(t, { url }, dataDir, { hostname: 'web1', agentId: 'agent-web1', enrollToken, ...options })
  const agent = await startAgent()
  const { content } = await server.data('GET', '/api/hosts')
  const pair = { server, hostId: content[0].id, traces, startAgent, agent }
  await untilLinked(pair)
  return pair
}

/** Settles when the server has the agent's link; polls, because the link may come at any time. */
export async function untilLinked({
  server,
  hostId,
}: {
  server: Pick<TestServer, 'data'>
  hostId: number
}): Promise<void> {
  while ((await server.data('GET', `/api/hosts/${hostId}`)).agent?.connected !== true) await delay(50)
}

/** Number of starts of a script that begins with `countStart`. */
export async function startsIn(traces: string): Promise<number> {
  const text = await readFile(join(traces, 'starts'), 'utf8').catch(() => '')
  return text.split('\n').length - 1
}

export const countStart = (traces: string): string => `echo $$ >> ${join(traces, 'starts')}`
