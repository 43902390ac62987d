import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ExecutionContext } from 'ava'
import { agentOptions, temporaryDirectory } from '../agents/agent.ts'
import { kill } from '../agents/agent-process.ts'
import { type CutLink, startCutLink } from '../faults/cut-link.ts'
import type { TestServer } from '../servers/server.ts'
import { type ServerProcess, startServerProcess } from '../servers/server-process.ts'

const program = fileURLToPath(new URL('../../fixtures/agent-process.js', import.meta.url))

/** A real agent behind a link that can be broken. */
export interface ChaosAgent {
  readonly hostname: string
  readonly hostId: number
  readonly dataDir: string
  readonly link: CutLink
  /** Settles once it is up, or was killed first. */
  start(): Promise<void>
  kill(signal?: NodeJS.Signals): Promise<void>
  signal(name: NodeJS.Signals): void
}

export interface ChaosFleet {
  readonly server: ServerProcess
  readonly agents: readonly ChaosAgent[]
  /** Number of running scripts of this fleet, as the kernel sees it. */
  scriptsAlive(): Promise<number>
}

/** Agents are killed with the test; their scripts end when the load calls `stop`. */
export async function chaosFleet(t: ExecutionContext, size: number): Promise<ChaosFleet> {
  const server = await startServerProcess(t)
  return { server, ...(await chaosAgents(t, server, size)) }
}

/** Agents of a server, or of a proxy in front of several. */
export async function chaosAgents(
  t: ExecutionContext,
  server: TestServer,
  size: number,
): Promise<Omit<ChaosFleet, 'server'>> {
  const root = await temporaryDirectory(t)
  const agents: ChaosAgent[] = []
  for (let n = 1; n <= size; n += 1) agents.push(await chaosAgent(t, server, root, `web${n}`))
  return { agents, scriptsAlive: () => wrappersBelow(root) }
}

async function chaosAgent(
  t: ExecutionContext,
  server: TestServer,
  root: string,
  hostname: string,
): Promise<ChaosAgent> {
  const link = await startCutLink(t, server.url)
  const dataDir = join(root, hostname)
  const { token } = await server.data('POST', '/api/enrollment-tokens', {})
  const { log: _, ...options } = agentOptions(link, dataDir)
  const settings = JSON.stringify({ ...options, hostname, enrollToken: token })
  let child: ChildProcess | null = null
  t.teardown(async () => {
    if (child) await kill(child, 'SIGKILL')
  })
  const start = async () => {
    const started = spawn(process.execPath, [program], {
      env: { PATH: process.env['PATH'], AGENT_OPTIONS: settings },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    child = started
    // Without a reader its end is never seen, and keeps the test's process alive.
    started.once('exit', () => started.stdout.destroy())
    await Promise.race([once(started.stdout, 'data'), once(started, 'exit')])
  }
  await start()
  const { content } = await server.data('GET', `/api/hosts?search=${hostname}`)
  return {
    hostname,
    hostId: content[0].id,
    dataDir,
    link,
    start,
    kill: async (signal = 'SIGKILL') => {
      if (child) await kill(child, signal)
    },
    signal: (name) => child?.kill(name),
  }
}

/** The wrapper of each script is a file in the directory of its execution. */
async function wrappersBelow(root: string): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')),
  )
  return lines.filter((line) => line.startsWith(`/bin/sh\0${root}`) && line.includes('/wrapper\0')).length
}
