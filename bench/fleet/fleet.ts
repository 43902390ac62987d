import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type BenchServer, binary, ended, startServer } from './server.ts'

const patience = 240

/** A server and agents, each the real binary in a process of its own. */
export interface Fleet extends BenchServer {
  agents: ChildProcess[]
}

export async function startFleet(size: number): Promise<Fleet> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-'))
  const server = await startServer(join(directory, 'server'))
  const agents: ChildProcess[] = []
  const fleet: Fleet = {
    ...server,
    agents,
    async stop() {
      for (const child of agents) child.kill('SIGKILL')
      await Promise.all([...agents.map((child) => ended(child)), server.stop()])
      await rm(directory, { recursive: true, force: true })
    },
  }
  const { token } = await fleet.call('POST', '/api/enrollment-tokens', { maxUses: size })
  const tokenFile = join(directory, 'token')
  await writeFile(tokenFile, String(token), { mode: 0o600 })
  for (let agent = 1; agent <= size; agent++) {
    const where = ['--data-dir', join(directory, `agent${agent}`), '--hostname', `host${agent}`]
    const how = ['--url', fleet.url, '--enroll-token-file', tokenFile, '--log-level', 'ERROR']
    agents.push(
      spawn(process.execPath, [binary, 'agent', 'run', ...where, ...how], {
        stdio: ['ignore', 'ignore', 'inherit'],
      }),
    )
  }
  for (let second = 0; second < patience; second++) {
    const page = await fleet.call('GET', '/api/hosts?size=500')
    const hosts = page['content'] as { agent: { connected: boolean } | null }[]
    if (hosts.filter(({ agent }) => agent?.connected).length === size) return fleet
    await setTimeout(1000)
  }
  await fleet.stop()
  throw new Error(`${size} agents were not linked within ${patience} s`)
}
