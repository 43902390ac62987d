import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Row } from './row.ts'

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** Milliseconds of a whole process, from spawn to exit. */
export async function wholeProcess(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<number> {
  const start = performance.now()
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'ignore'], env })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}`)
  return performance.now() - start
}

/** Medians of two measures, and the ratios of their single rounds from the least to the greatest. */
export interface Measured {
  ours: number
  baseline: number
  ratios: readonly number[]
}

/** Two measures in turn, A B A B …, so that a machine whose speed drifts treats both alike; medians. */
export async function inTurn(
  rounds: number,
  ours: () => Promise<number>,
  baseline: () => Promise<number>,
): Promise<Measured> {
  const a: number[] = []
  const b: number[] = []
  for (let round = 0; round <= rounds; round++) {
    const mine = await ours()
    const bare = await baseline()
    // The first round warms caches and counts for nothing.
    if (round === 0) continue
    a.push(mine)
    b.push(bare)
  }
  const ratios = a.map((mine, round) => mine / (b[round] ?? Number.NaN)).sort((one, other) => one - other)
  return { ours: median(a), baseline: median(b), ratios }
}

/** Resident megabytes of a process. */
export function residentMB(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid ?? 'self'}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
}

/** A row whose goal is a bound on ours / baseline. */
export function ratioRow(
  name: string,
  unit: string,
  { ours, baseline, ratios }: Measured,
  bound: { atMost: number } | { atLeast: number },
): Row {
  const ratio = ours / baseline
  const met = 'atMost' in bound ? ratio <= bound.atMost : ratio >= bound.atLeast
  const goal = 'atMost' in bound ? `≤ ${bound.atMost} ×` : `≥ ${bound.atLeast} ×`
  const spread = `${(ratios[0] ?? ratio).toFixed(2)}–${(ratios.at(-1) ?? ratio).toFixed(2)}`
  return { name, unit, ours, baseline, ratio, spread, goal, met }
}
