import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { registerAgents } from '../rest/register.ts'
import { type BenchServer, ended, startServer } from './server.ts'

/** Seconds within which the server must report every agent as connected. */
const patience = 120

/** A server and this number of protocol-level agents, `perProcess` of them per process. */
export async function startProtocolFleet(agents: number, perProcess: number): Promise<BenchServer> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-'))
  const server = await startServer(join(directory, 'server'))
  const children: ChildProcess[] = []
  const fleet: BenchServer = {
    ...server,
    async stop() {
      for (const child of children) child.kill('SIGKILL')
      await Promise.all([...children.map((child) => ended(child)), server.stop()])
      await rm(directory, { recursive: true, force: true })
    },
  }
  const registered = await registerAgents(fleet, agents)
  const program = fileURLToPath(new URL('protocol-agents.js', import.meta.url))
  for (let first = 0; first < agents; first += perProcess) {
    const child = fork(program)
    children.push(child)
    child.send({ url: fleet.url, agents: registered.slice(first, first + perProcess) })
    await once(child, 'message')
  }
  for (let second = 0; second < patience; second++) {
    if ((await connected(fleet, agents)) === agents) return fleet
    await setTimeout(1000)
  }
  await fleet.stop()
  throw new Error(`${agents} protocol-level agents were not linked within ${patience} s`)
}

async function connected(fleet: BenchServer, agents: number): Promise<number> {
  let count = 0
  for (let page = 0; page * 500 < agents; page++) {
    const { content } = await fleet.call('GET', `/api/hosts?size=500&page=${page}`)
    const hosts = content as { agent: { connected: boolean } | null }[]
    count += hosts.filter(({ agent }) => agent?.connected).length
  }
  return count
}
