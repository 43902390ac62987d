import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import type { Fleet } from '../fleet/fleet.ts'
import { binary, ended } from '../fleet/server.ts'
import { residentMB } from '../measure.ts'
import type { Row } from '../row.ts'

const gibibyte = 2 ** 30
const flood = `head -c ${gibibyte} /dev/zero | tr '\\0' x | fold -w 99`
const ticker = 'while :; do date +%s%N; sleep 0.05; done'
/** Milliseconds: what start-up left behind has been collected by then. */
const settle = 5_000
const sampleEvery = 20
const growthBound = 64
const delayBound = 100

interface Ticker {
  child: ChildProcess
  delays: number[]
}

/** A script that tells the time every 50 ms, and what follows it and sees how late each arrives. */
function startTicker(fleet: Fleet, host: string): Ticker {
  const env = { ...process.env, RSM_URL: fleet.url, RSM_TOKEN: fleet.token }
  const child = spawn(process.execPath, [binary, 'exec', '-w', host, '-N', '--', ticker], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env,
  })
  const delays: number[] = []
  createInterface({ input: child.stdout }).on('line', (line) => delays.push(Date.now() - Number(line) / 1e6))
  return { child, delays }
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

interface Peak {
  idle: number
  peak: number
}

function watchMemory(child: ChildProcess | undefined, peak: Peak): NodeJS.Timeout {
  return setInterval(() => {
    peak.peak = Math.max(peak.peak, residentMB(child?.pid))
  }, sampleEvery)
}

/** 1 GiB from one script: what it costs the agent and the server, and how late others' output arrives meanwhile. */
export async function benchFlood(fleet: Fleet, maxOutputBytes: number | null): Promise<Row[]> {
  const what = maxOutputBytes === null ? 'cut at 64 MiB' : 'all of it'
  const tickers = [startTicker(fleet, 'host1'), startTicker(fleet, 'host2')]
  await Promise.all(tickers.map(({ child }) => once(child.stdout ?? child, 'data')))
  await setTimeout(settle)
  const processes = [fleet.agents[0], fleet.child]
  const memory = processes.map((child) => ({ idle: residentMB(child?.pid), peak: 0 }))
  const watches = processes.map((child, at) => watchMemory(child, memory[at] ?? { idle: 0, peak: 0 }))
  for (const { delays } of tickers) delays.length = 0
  const start = performance.now()
  const task = await fleet.call('POST', '/api/tasks', {
    script: { content: flood },
    target: { selector: 'host1' },
    ...(maxOutputBytes === null ? {} : { maxOutputBytes }),
    timeout: 600,
    async: false,
  })
  const seconds = (performance.now() - start) / 1000
  for (const watch of watches) clearInterval(watch)
  const delays = tickers.map((one) => [...one.delays])
  for (const { child } of tickers) child.kill('SIGINT')
  await Promise.all(tickers.map(({ child }) => ended(child)))
  const [result] = task['results'] as { stdoutBytes: number; status: string; truncated: boolean }[]
  process.stderr.write(`1 GiB, ${what}: ${seconds.toFixed(1)} s, ${JSON.stringify(result)}\n`)
  const rows: Row[] = memory.map(({ idle, peak }, at) => ({
    name: `RSS of the ${at === 0 ? 'agent' : 'server'} in a 1 GiB flood, ${what}, beside idle`,
    unit: 'MB',
    ours: peak,
    baseline: idle,
    ratio: peak / idle,
    goal: `≤ +${growthBound} MB`,
    met: peak - idle <= growthBound,
  }))
  for (const [at, of] of delays.entries()) {
    const late = quantile(of, 0.99)
    rows.push({
      name: `delay of a line on ${at === 0 ? 'the same' : 'another'} host meanwhile, p99 beside median of ${of.length}`,
      unit: 'ms',
      ours: late,
      baseline: quantile(of, 0.5),
      ratio: late / quantile(of, 0.5),
      spread: `max ${quantile(of, 1).toFixed(0)}`,
      goal: `≤ ${delayBound} ms`,
      met: late <= delayBound,
    })
  }
  return rows
}
