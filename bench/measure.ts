import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Row } from './row.ts'

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

interface Process {
  readonly env?: NodeJS.ProcessEnv
  /** Text for its stdin. */
  readonly input?: string
}

function begin(command: string, args: readonly string[], { env, input }: Process, stdout: 'ignore' | 'pipe') {
  const stdin = input === undefined ? 'ignore' : 'pipe'
  const child = spawn(command, args, { stdio: [stdin, stdout, 'ignore'], env: env ?? process.env })
  child.stdin?.end(input)
  return child
}

async function succeeded(child: ChildProcess): Promise<void> {
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`${child.spawnargs.join(' ')} ended with ${code}`)
}

/** Milliseconds of a whole process, from spawn to exit. */
export async function wholeProcess(
  command: string,
  args: readonly string[],
  how: Process = {},
): Promise<number> {
  const start = performance.now()
  await succeeded(begin(command, args, how, 'ignore'))
  return performance.now() - start
}

/** Milliseconds from spawn to the first output; resolves once the process has ended. */
export async function untilOutput(
  command: string,
  args: readonly string[],
  how: Process = {},
): Promise<number> {
  const start = performance.now()
  const child = begin(command, args, how, 'pipe')
  const ended = succeeded(child)
  let first = Number.NaN
  child.stdout?.once('data', () => {
    first = performance.now() - start
  })
  child.stdout?.resume()
  await ended
  return first
}

/** Medians of two measures, and the ratios of single rounds in ascending order. */
export interface Measured {
  ours: number
  baseline: number
  ratios: readonly number[]
}

/** Medians of two measures that alternate, A B A B …, so that a machine whose speed drifts affects both alike. */
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
    // The first round warms up caches and is not counted.
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

const sampleEvery = 20

/** Memory of a process in megabytes: now, and its highest sample until `stop`. */
export function watchMemory(pid: number | undefined): { idle: number; stop(): number } {
  const idle = residentMB(pid)
  let peak = idle
  const sampling = setInterval(() => {
    peak = Math.max(peak, residentMB(pid))
  }, sampleEvery)
  return {
    idle,
    stop() {
      clearInterval(sampling)
      return peak
    },
  }
}

/** A row whose goal is a bound on the ratio of ours to the baseline. */
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
