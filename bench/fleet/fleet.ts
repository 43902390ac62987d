import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type BenchServer, binary, ended, startServer } from './server.ts'

const patience = 240

/** One server, or several of one store. */
export interface Servers {
  readonly servers: readonly BenchServer[]
  stop(): Promise<void>
}

/** Servers and agents, each the real binary in a process of its own; calls go to the first server. */
export interface Fleet extends BenchServer, Servers {
  agents: ChildProcess[]
}

/** Writes a file with an enrollment token for this number of agents. */
export async function writeToken(server: BenchServer, maxUses: number, directory: string): Promise<string> {
  const { token } = await server.call('POST', '/api/enrollment-tokens', { maxUses })
  const file = join(directory, 'token')
  await writeFile(file, String(token), { mode: 0o600 })
  return file
}

interface Place {
  readonly hostname: string
  readonly tokenFile: string
  /** Parent of its data directory. */
  readonly directory: string
}

/** Starts an agent with this command: Node and its program, or an executable. */
export function startAgent(words: readonly string[], { url }: BenchServer, place: Place): ChildProcess {
  const { hostname, tokenFile, directory } = place
  const [program = '', ...own] = words
  const where = ['--data-dir', join(directory, hostname), '--hostname', hostname]
  const how = ['--url', url, '--enroll-token-file', tokenFile, '--log-level', 'ERROR']
  return spawn(program, [...own, 'agent', 'run', ...where, ...how], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** Resolves once this number of agents is linked. */
export async function untilLinked(server: BenchServer, size: number): Promise<void> {
  for (let second = 0; second < patience; second++) {
    const page = await server.call('GET', '/api/hosts?size=500')
    const hosts = page['content'] as { agent: { connected: boolean } | null }[]
    if (hosts.filter(({ agent }) => agent?.connected).length === size) return
    await setTimeout(1000)
  }
  throw new Error(`${size} agents were not linked within ${patience} s`)
}

async function startOnFiles(directory: string): Promise<Servers> {
  const server = await startServer(join(directory, 'server'))
  return { servers: [server], stop: () => server.stop() }
}

/** Starts a fleet. Agents link to the servers in turn, the first agent to the first server. */
export async function startFleet(size: number, open = startOnFiles): Promise<Fleet> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-'))
  const opened = await open(directory)
  const { servers } = opened
  const [first] = servers
  if (!first) throw new Error('no server')
  const agents: ChildProcess[] = []
  const fleet: Fleet = {
    ...first,
    servers,
    agents,
    async stop() {
      for (const child of agents) child.kill('SIGKILL')
      await Promise.all([...agents.map((child) => ended(child)), opened.stop()])
      await rm(directory, { recursive: true, force: true })
    },
  }
  const tokenFile = await writeToken(fleet, size, directory)
  const words = [process.execPath, binary]
  for (let agent = 0; agent < size; agent++) {
    const place = { hostname: `host${agent + 1}`, tokenFile, directory }
    agents.push(startAgent(words, servers[agent % servers.length] ?? first, place))
  }
  try {
    await untilLinked(fleet, size)
  } catch (error) {
    await fleet.stop()
    throw error
  }
  return fleet
}
