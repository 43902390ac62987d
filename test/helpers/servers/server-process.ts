import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ServerOptions } from '../../../src/server/app/options.ts'
import type { Ending } from '../agents/agent.ts'
import { crashed, type Fault, type Hold, withFault } from '../faults/fault.ts'
import { adminLogin, restCaller, type TestServer } from './server.ts'
import { onSteadyPort } from './steady-port.ts'

const present = fileURLToPath(new URL('../../fixtures/server-process.js', import.meta.url))

/** A server in a process of its own: `kill` is kill -9, `start` starts the next one on the same directory and port. */
export interface ServerProcess extends TestServer {
  readonly pid: number | undefined
  kill(): Promise<void>
  signal(name: NodeJS.Signals): void
  /** Adds `env` to the environment of this process. */
  start(env?: NodeJS.ProcessEnv): Promise<void>
  /** SIGTERM; returns exit code and milliseconds to the exit. */
  terminate(): Promise<{ code: number | null; took: number }>
  /** Settles when it has ended on its own. */
  ended(): Promise<void>
  /** Settles when it has killed itself at its fault point. */
  crashed(): Promise<void>
  /** Its log, if it was started with a log level. */
  logged(): string
  /** Resident memory in MB. */
  memory(): Promise<number>
}

/** `fault` and `hold` apply to the first process only, not to those that `start` makes. */
export async function startServerProcess(
  t: Ending,
  first: {
    fault?: Fault
    hold?: Hold
    logLevel?: 'INFO' | 'DEBUG'
    firstSweepAfter?: number
    options?: Partial<ServerOptions>
    /** Seconds of its wall clock per second, across all of its processes. */
    clockSpeed?: number
    /** Program of a server of another version. */
    program?: string
  } = {},
): Promise<ServerProcess> {
  const dataDir = await mkdtemp(join(tmpdir(), 'rsm-server-'))
  let child: ChildProcess | null = null
  let log = ''
  const { logLevel, firstSweepAfter, options = {}, program = present, clockSpeed } = first
  const clock =
    clockSpeed === undefined ? {} : { CLOCK: JSON.stringify({ from: Date.now(), speed: clockSpeed }) }
  const sweep = firstSweepAfter === undefined ? [] : [String(firstSweepAfter)]
  async function end(signal: NodeJS.Signals): Promise<void> {
    const ending = child
    child = null
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return
    ending.kill(signal)
    await once(ending, 'exit')
  }
  let port = 0
  const server: ServerProcess = {
    url: '',
    dataDir,
    token: '',
    ...restCaller(() => server),
    get pid() {
      return child?.pid
    },
    async start(added = {}) {
      const { execArgv, env } = server.url ? withFault() : withFault(first.fault, first.hold)
      const started = spawn(
        process.execPath,
        [...execArgv, program, dataDir, String(port), logLevel ?? 'ERROR', ...sweep],
        {
          stdio: ['ignore', 'pipe', 'pipe'],
          env: { ...process.env, ...env, SERVER_OPTIONS: JSON.stringify(options), ...clock, ...added },
        },
      )
      child = started
      started.stderr.on('data', (data: Buffer) => {
        if (logLevel === undefined) process.stderr.write(data)
        else log += data.toString()
      })
      started.once('exit', () => started.stdout.destroy())
      const ended = once(started, 'exit').then(([code, signal]) => {
        if (signal === null) throw new Error(`the server ended with ${code} before it was up: ${log}`)
      })
      const line = once(createInterface({ input: started.stdout }), 'line') as Promise<[string]>
      // A server that is killed during its start ends without an error.
      const up = await Promise.race([line, ended])
      ended.catch(() => undefined)
      if (up) server.url = up[0]
    },
    async ended() {
      if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
    crashed: () => crashed(child as ChildProcess),
    logged: () => log,
    async memory() {
      const status = await readFile(`/proc/${child?.pid}/status`, 'utf8')
      return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
    },
    kill: () => end('SIGKILL'),
    signal: (name) => child?.kill(name),
    async terminate() {
      const ending = child
      const began = performance.now()
      await end('SIGTERM')
      return { code: ending?.exitCode ?? null, took: performance.now() - began }
    },
    stop: () => end('SIGKILL'),
    async restart() {
      await server.kill()
      await server.start()
    },
  }
  t.teardown(async () => {
    await server.kill()
    await rm(dataDir, { recursive: true, force: true })
  })
  await onSteadyPort((steady) => {
    port = steady
    return server.start()
  })
  server.token = (await server.data('POST', '/api/auth/login', adminLogin)).token
  return server
}
