import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { type Clock, systemClock } from '../../../src/agent/clock.ts'
import { type AgentOptions, type RunningAgent, startAgent } from '../../../src/agent/main.ts'
import { FakeServer } from '../servers/fake-server.ts'

/** The scope of a test, or of a file of tests, at whose end helpers clean up. */
export type Ending = Pick<ExecutionContext, 'teardown'>

export async function temporaryDirectory(t: Ending): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-agent-'))
  t.teardown(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }))
  return directory
}

export function agentOptions(server: { url: string }, dataDir: string): AgentOptions {
  return {
    url: server.url,
    dataDir,
    enrollToken: 'rsm_enr_test',
    allowRunAs: [],
    maxExecutions: 16,
    onDemand: false,
    drain: false,
    allowUnsigned: false,
    logLevel: 'ERROR',
    log: () => {},
    diskSize: async () => 100,
  }
}

/** Runs timers of up to 3 s ten times as fast, because intervals are at least 1 s. */
export const hasty: Clock = {
  ...systemClock,
  after: (delay, run) => systemClock.after(delay <= 3_000 ? delay / 10 : delay, run),
}

interface Pair {
  server: FakeServer
  agent: RunningAgent
  dataDir: string
}

/** A fake server and a real agent in this process, linked. */
export async function linkedAgent(t: ExecutionContext, options: Partial<AgentOptions> = {}): Promise<Pair> {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  const agent = await startAgent({ ...agentOptions(server, dataDir), ...options })
  t.teardown(async () => {
    await agent.stop()
    await server.close()
  })
  if (options.onDemand !== true) await server.linked()
  return { server, agent, dataDir }
}
