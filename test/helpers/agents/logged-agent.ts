import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ExecutionContext } from 'ava'
import type { AgentOptions } from '../../../src/agent/main.ts'
import { said } from '../programs/said.ts'
import { agentOptions } from './agent.ts'
import { kill } from './agent-process.ts'

const program = fileURLToPath(new URL('../../fixtures/agent-process.js', import.meta.url))

/** A real agent in a process of its own that is up, with its log. */
export interface LoggedAgent {
  readonly child: ChildProcess
  readonly log: { level: number; msg: string; [field: string]: unknown }[]
  /** Counts log lines with this message. */
  count(message: string): number
}

export async function loggedAgent(
  t: ExecutionContext,
  server: { url: string },
  dataDir: string,
  options: Partial<AgentOptions> = {},
): Promise<LoggedAgent> {
  const { log: _, ...plain } = { ...agentOptions(server, dataDir), logLevel: 'INFO', ...options }
  const child = spawn(process.execPath, [program], {
    env: { PATH: process.env['PATH'], AGENT_OPTIONS: JSON.stringify(plain) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => kill(child, 'SIGKILL'))
  const log: LoggedAgent['log'] = []
  createInterface({ input: child.stderr }).on('line', (line) => log.push(JSON.parse(line)))
  await said(child)
  return { child, log, count: (message) => log.filter((line) => line.msg === message).length }
}
