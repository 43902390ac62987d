import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { patiently } from './patiently.ts'

export const binary = fileURLToPath(new URL('../../../bin/run.js', import.meta.url))
const password = 'a password for the benchmark'

/** The real server: the binary in a process of its own. */
export interface BenchServer {
  url: string
  /** Token of an administrator's session. */
  token: string
  child: ChildProcess
  /** Milliseconds from spawn until it accepted requests. */
  startedIn: number
  /** `key`: idempotency key; calls with the same one are carried out once. */
  call(method: string, path: string, body?: unknown, key?: string): Promise<Record<string, unknown>>
  stop(): Promise<void>
}

/** Resolves when the server accepts requests and the administrator is logged in. */
export async function startServer(
  dataDir: string,
  logLevel: 'INFO' | 'ERROR' = 'ERROR',
  port = 0,
  more: readonly string[] = [],
): Promise<BenchServer> {
  const spawned = performance.now()
  const where = ['--port', String(port), '--data-dir', dataDir]
  const child = spawn(
    process.execPath,
    [binary, 'server', 'start', ...where, ...more, '--log-level', logLevel, '--json'],
    {
      stdio: ['ignore', 'pipe', logLevel === 'ERROR' ? 'inherit' : 'ignore'],
      env: { ...process.env, RSM_ADMIN_PASSWORD: password },
    },
  )
  const [line] = (await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    ended(child).then(() => {
      throw new Error(`the server in ${dataDir} ended before it accepted requests`)
    }),
  ])) as [string]
  const startedIn = performance.now() - spawned
  const server: BenchServer = {
    url: (JSON.parse(line) as { url: string }).url,
    token: '',
    child,
    startedIn,
    async call(method, path, body, key) {
      const response = await fetch(server.url + path, {
        method,
        headers: {
          'content-type': 'application/json',
          ...(server.token ? { authorization: `Bearer ${server.token}` } : {}),
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const envelope = (await response.json()) as { message: string; data?: Record<string, unknown> }
      if (!envelope.data) throw new Error(`${method} ${path}: ${envelope.message}`)
      return envelope.data
    },
    async stop() {
      child.kill('SIGKILL')
      await ended(child)
    },
  }
  const login = () => server.call('POST', '/api/auth/login', { username: 'admin', password })
  server.token = String((await patiently(login))['token'])
  return server
}

export async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
