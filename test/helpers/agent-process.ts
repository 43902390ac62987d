import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { ExecutionContext } from 'ava'
import type { AgentOptions } from '../../src/agent/main.ts'
import { agentOptions } from './agent.ts'

const program = fileURLToPath(new URL('../fixtures/agent-process.js', import.meta.url))

/** A real agent in a process of its own, past its start. */
export async function agentProcess(
  t: ExecutionContext,
  server: { url: string },
  dataDir: string,
  options: Partial<AgentOptions> & { bootId?: string } = {},
): Promise<ChildProcess> {
  const { log: _, ...plain } = { ...agentOptions(server, dataDir), ...options }
  const child = spawn(process.execPath, [program], {
    env: { PATH: process.env['PATH'], AGENT_OPTIONS: JSON.stringify(plain) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => kill(child, 'SIGKILL'))
  await once(child.stdout, 'data')
  return child
}

/** Settles when the process has ended. */
export async function kill(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill(signal)
  await exited
}
