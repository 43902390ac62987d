import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export const binary = fileURLToPath(new URL('../../../bin/run.js', import.meta.url))
const password = 'a password for the benchmark'
const patience = 240

/** A server and agents, each the real binary in a process of its own. */
export interface Fleet {
  url: string
  token: string
  server: ChildProcess
  agents: ChildProcess[]
  call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>
  stop(): Promise<void>
}

export async function startFleet(size: number): Promise<Fleet> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-'))
  const server = spawn(
    process.execPath,
    [
      binary,
      'server',
      'start',
      '--port',
      '0',
      '--data-dir',
      join(directory, 'server'),
      '--log-level',
      'ERROR',
      '--json',
    ],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, RSM_ADMIN_PASSWORD: password } },
  )
  const [line] = (await once(createInterface({ input: server.stdout }), 'line')) as [string]
  const { url } = JSON.parse(line) as { url: string }
  const agents: ChildProcess[] = []
  const fleet: Fleet = {
    url,
    token: '',
    server,
    agents,
    async call(method, path, body) {
      const response = await fetch(url + path, {
        method,
        headers: {
          'content-type': 'application/json',
          ...(fleet.token ? { authorization: `Bearer ${fleet.token}` } : {}),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const envelope = (await response.json()) as { message: string; data?: Record<string, unknown> }
      if (!envelope.data) throw new Error(`${method} ${path}: ${envelope.message}`)
      return envelope.data
    },
    async stop() {
      for (const child of [...agents, server]) child.kill('SIGKILL')
      await Promise.all([...agents, server].map((child) => ended(child)))
      await rm(directory, { recursive: true, force: true })
    },
  }
  fleet.token = String(
    (await fleet.call('POST', '/api/auth/login', { username: 'admin', password }))['token'],
  )
  const { token } = await fleet.call('POST', '/api/enrollment-tokens', { maxUses: size })
  const tokenFile = join(directory, 'token')
  await writeFile(tokenFile, String(token), { mode: 0o600 })
  for (let agent = 1; agent <= size; agent++) {
    const where = ['--data-dir', join(directory, `agent${agent}`), '--hostname', `host${agent}`]
    const how = ['--url', url, '--enroll-token-file', tokenFile, '--log-level', 'ERROR']
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

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
