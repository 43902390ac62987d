import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type BenchServer, ended, startServer } from '../fleet/server.ts'
import { type RegisteredAgent, registerAgents } from '../rest/register.ts'
import type { Row } from '../row.ts'
import { type Herd, startHerd } from './generator.ts'

const agents = 10_000
const callInterval = 100
const longestCall = 1000
const bareProgram = fileURLToPath(new URL('../bare/ws-listener.js', import.meta.url))

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Milliseconds from the server's report that it is ready until all agents are linked again. */
async function comeBack(herd: Herd, child: ChildProcess, restart: () => Promise<unknown>): Promise<number> {
  child.kill('SIGKILL')
  await ended(child)
  await herd.opened(0)
  await restart()
  const ready = performance.now()
  await herd.opened(agents)
  return performance.now() - ready
}

async function startBare(port: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [bareProgram, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(createInterface({ input: child.stdout }), 'line')
  return child
}

/** `startedIn`: time from our server's start until it is ready; the bare one starts with the same delay. */
async function bareTime(registered: readonly RegisteredAgent[], startedIn: number): Promise<number> {
  const port = await freePort()
  let child = await startBare(port)
  const herd = startHerd(`http://127.0.0.1:${port}`, registered)
  try {
    await herd.opened(agents)
    return await comeBack(herd, child, async () => {
      await setTimeout(startedIn)
      child = await startBare(port)
    })
  } finally {
    await herd.stop()
    child.kill('SIGKILL')
    await ended(child)
  }
}

interface Calls {
  slowest: number
  mostOffline: number
}

/** A user's calls, one after the other, until `over` aborts. */
async function callUntil(server: BenchServer, over: AbortSignal): Promise<Calls> {
  const seen = { slowest: 0, mostOffline: 0 }
  while (!over.aborted) {
    const begun = performance.now()
    const { totalElements } = await server.call('GET', '/api/hosts?status=OFFLINE&size=1')
    seen.slowest = Math.max(seen.slowest, performance.now() - begun)
    seen.mostOffline = Math.max(seen.mostOffline, Number(totalElements))
    await setTimeout(callInterval)
  }
  return seen
}

/** A whole fleet reconnects after its server was killed vs the same program on a bare `ws` server (reliability L05). */
export async function benchHerd(): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-herd-'))
  const port = await freePort()
  const start = () => startServer(directory, 'ERROR', port)
  let server = await start()
  const registered = await registerAgents(server, agents)
  const herd = startHerd(server.url, registered)
  try {
    await herd.opened(agents)
    const over = new AbortController()
    let calls: Promise<Calls> | undefined
    const ours = await comeBack(herd, server.child, async () => {
      server = await start()
      calls = callUntil(server, over.signal)
    })
    over.abort()
    const { slowest, mostOffline } = (await calls) ?? { slowest: Number.NaN, mostOffline: Number.NaN }
    await Promise.all([herd.stop(), server.stop()])
    const baseline = await bareTime(registered, server.startedIn)
    const ratio = ours / baseline
    const name = `${agents} agents reconnect after kill -9`
    return [
      {
        name: `${name}, vs a bare ws server`,
        unit: 'ms',
        ours,
        baseline,
        ratio,
        goal: '≤ 2 ×, none OFFLINE',
        met: ratio <= 2 && mostOffline === 0,
      },
      {
        name: `a user's slowest call while ${name}`,
        unit: 'ms',
        ours: slowest,
        baseline: longestCall,
        ratio: slowest / longestCall,
        goal: `≤ ${longestCall} ms`,
        met: slowest <= longestCall,
      },
    ]
  } finally {
    await Promise.all([herd.stop(), server.stop()])
    await rm(directory, { recursive: true, force: true })
  }
}
