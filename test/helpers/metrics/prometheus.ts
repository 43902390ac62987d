import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

/** Whether Prometheus is installed (Debian package `prometheus`). */
export const hasPrometheus = spawnSync('prometheus', ['--version']).error === undefined

export interface Prometheus {
  /** Evaluates now; rejects with Prometheus' message about an expression that it cannot evaluate. */
  query(expression: string): Promise<readonly { metric: Record<string, string>; value: [number, string] }[]>
  /** Its rules, with their health and errors. */
  rules(): Promise<readonly { name: string; health: string; lastError?: string }[]>
}

/** Runs a real Prometheus with this configuration until the test is over. */
export async function startPrometheus(t: ExecutionContext, config: string): Promise<Prometheus> {
  const data = temporaryDirectory(t)
  const child = spawn(
    'prometheus',
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(data, 'tsdb')}`,
      '--web.listen-address=127.0.0.1:0',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  t.teardown(async () => {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const url = `http://${await addressOf(child.stderr)}/api/v1`
  async function call(path: string): Promise<any> {
    const answer = (await (await fetch(`${url}${path}`)).json()) as {
      status: string
      data: any
      error?: string
    }
    if (answer.status !== 'success') throw new Error(`${decodeURIComponent(path)}: ${answer.error}`)
    return answer.data
  }
  return {
    query: async (expression) => (await call(`/query?query=${encodeURIComponent(expression)}`)).result,
    rules: async () =>
      (await call('/rules')).groups.flatMap((group: { rules: readonly unknown[] }) => group.rules),
  }
}

/** Prometheus logs its address and that it is ready, in either order. */
async function addressOf(log: NodeJS.ReadableStream): Promise<string> {
  const told: string[] = []
  const address = () => /msg="Listening on" address=(\S+)/.exec(told.join('\n'))?.[1]
  for await (const line of createInterface({ input: log })) {
    told.push(line)
    if (address() && told.some((one) => one.includes('Server is ready'))) break
  }
  // Later output is read and dropped: a full pipe would stop Prometheus.
  log.resume()
  return address() ?? Promise.reject(new Error(`Prometheus did not start: ${told.join('\n')}`))
}
