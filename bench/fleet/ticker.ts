import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { type BenchServer, binary, ended } from './server.ts'

const script = 'while :; do date +%s%N; sleep 0.05; done'

/** A script that prints the time every 50 ms, and a follower that measures the delay of each line. */
export interface Ticker {
  /** Milliseconds. */
  readonly delays: number[]
  stop(): Promise<void>
}

/** Resolves with the first line. */
export async function startTicker({ url, token }: BenchServer, host: string): Promise<Ticker> {
  const child: ChildProcess = spawn(process.execPath, [binary, 'exec', '-w', host, '-N', '--', script], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, RSM_URL: url, RSM_TOKEN: token },
  })
  const delays: number[] = []
  if (child.stdout === null) throw new Error('no stdout')
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => delays.push(Date.now() - Number(line) / 1e6))
  await once(lines, 'line')
  return {
    delays,
    async stop() {
      child.kill('SIGINT')
      await ended(child)
    },
  }
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
