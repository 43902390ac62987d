import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { AgentOptions } from '../../../src/agent/main.ts'
import { openProgram } from '../programs/open-program.ts'
import { said, shownErrors } from '../programs/said.ts'
import { agentOptions, temporaryDirectory } from './agent.ts'

/** Packages that an agent loads from node_modules. */
const packages = ['systeminformation', 'tweetnacl', 'typebox', 'ws']

/**
 * Starts a real agent as an unprivileged user, who can neither make cgroups nor change users, and waits until it is up. Only
 * for root.
 */
export async function plainAgent(
  t: ExecutionContext,
  server: { url: string },
  options: Partial<AgentOptions> = {},
): Promise<ChildProcess> {
  const dataDir = await temporaryDirectory(t)
  spawnSync('chown', ['nobody', dataDir])
  const program = join(openProgram(t, packages), 'dist/test/fixtures/agent-process.js')
  const { log: _, ...plain } = { ...agentOptions(server, dataDir), agentId: 'plain', ...options }
  const become = ['--reuid=nobody', '--regid=nogroup', '--clear-groups']
  const child = spawn('setpriv', [...become, process.execPath, program], {
    env: { PATH: process.env['PATH'], AGENT_OPTIONS: JSON.stringify(plain) },
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: '/',
  })
  t.teardown(() => child.kill('SIGKILL'))
  shownErrors(child)
  await said(child)
  return child
}
