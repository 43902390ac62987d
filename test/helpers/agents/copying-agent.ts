import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { AgentOptions, RunningAgent } from '../../../src/agent/main.ts'
import type { CopyOrder, FetchOrder, ScriptComplete } from '../../../src/core/protocol/messages.ts'
import type { FakeServer } from '../servers/fake-server.ts'
import { FileRoutes } from '../servers/file-routes.ts'
import { linkedAgent, temporaryDirectory } from './agent.ts'

/** How an order ended, and its output. */
interface End {
  readonly taskId: string
  readonly status: ScriptComplete['status'] | undefined
  readonly exitCode: number
  readonly error: string | null | undefined
  readonly changed: boolean | undefined
  readonly said: string
}

interface Copying {
  readonly server: FakeServer
  readonly agent: RunningAgent
  readonly dataDir: string
  readonly fileRoutes: FileRoutes
  /** Target directory; any user may enter it. */
  readonly directory: string
  /** Path of a file in it that does not exist yet. */
  readonly path: string
  readonly copy: (order: Omit<CopyOrder, 'kind'> & Partial<CopyOrder>, runAs?: string) => Promise<End>
  readonly fetch: (order: Partial<FetchOrder> & { path: string }, runAs?: string) => Promise<End>
}

/** An agent in this process whose server provides and accepts files, and a directory for them. */
export async function copyingAgent(
  t: ExecutionContext,
  options: Partial<AgentOptions> = {},
): Promise<Copying> {
  const { server, agent, dataDir } = await linkedAgent(t, options)
  const fileRoutes = new FileRoutes(server)
  const directory = await temporaryDirectory(t)
  let orders = 0
  const ended = async (taskId: string) => {
    const { status, exitCode, error, changed } = await server.completed(taskId)
    return { taskId, status, exitCode, error, changed, said: server.text(taskId) }
  }
  return {
    server,
    agent,
    dataDir,
    fileRoutes,
    directory,
    path: join(directory, 'file'),
    copy(order, runAs) {
      const taskId = `copy-${++orders}`
      const copy = { kind: 'FILE' as const, ...order }
      server.order('COPY_FILE', agent.agentId, { taskId, copy, ...(runAs ? { runAs } : {}) })
      return ended(taskId)
    },
    fetch(order, runAs) {
      const taskId = `fetch-${++orders}`
      const fetch = { kind: 'FILE' as const, maxSize: 1024 ** 3, ...order }
      server.order('FETCH_FILE', agent.agentId, { taskId, fetch, ...(runAs ? { runAs } : {}) })
      return ended(taskId)
    },
  }
}

export const done = { status: 'SUCCESS', exitCode: 0, error: null } as const

export const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8)

/** Checks that the directory holds these names only. */
export const holds = (t: ExecutionContext, directory: string, ...names: string[]): boolean =>
  t.deepEqual(readdirSync(directory).sort(), names.sort())
