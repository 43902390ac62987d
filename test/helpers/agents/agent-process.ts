import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { ExecutionContext } from 'ava'
import type { AgentOptions } from '../../../src/agent/main.ts'
import { type Fault, withFault } from '../faults/fault.ts'
import { said, shownErrors } from '../programs/said.ts'
import { agentOptions } from './agent.ts'

const program = fileURLToPath(new URL('../../fixtures/agent-process.js', import.meta.url))

/** Starts a real agent in a process of its own, and waits until it is up. */
export async function agentProcess(
  t: ExecutionContext,
  server: { url: string },
  dataDir: string,
  /** `under`: a program, with arguments, that starts it; `haste`: factor by which its pauses are shorter. */
  options: Partial<AgentOptions> & { bootId?: string; haste?: number; under?: readonly string[] } = {},
  /** Fault point at which it ends itself, maybe before it is up. */
  fault?: Fault | null,
): Promise<ChildProcess> {
  const { log: _, under = [], ...plain } = { ...agentOptions(server, dataDir), ...options }
  const { execArgv, env } = withFault(fault)
  const [first, ...words] = [...under, process.execPath, ...execArgv, program]
  const child = spawn(first, words, {
    env: { PATH: process.env['PATH'], AGENT_OPTIONS: JSON.stringify(plain), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => kill(child, 'SIGKILL'))
  shownErrors(child)
  const up = said(child)
  await (fault ? Promise.race([up.catch(() => undefined), once(child, 'exit')]) : up)
  return child
}

/** Settles when the process has ended. */
export async function kill(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill(signal)
  await exited
}
