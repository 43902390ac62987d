import { setTimeout } from 'node:timers/promises'
import type { Fleet } from '../fleet/fleet.ts'
import { quantile, startTicker } from '../fleet/ticker.ts'
import { watchMemory } from '../measure.ts'
import type { Row } from '../row.ts'

const gibibyte = 2 ** 30
const flood = `head -c ${gibibyte} /dev/zero | tr '\\0' x | fold -w 99`
/** Milliseconds until garbage of the start-up has been collected. */
const settle = 5_000
const growthBound = 64
const delayBound = 100

/** 1 GiB from one script: memory of agent and server, and the delay of other output meanwhile. */
export async function benchFlood(fleet: Fleet, maxOutputBytes: number | null): Promise<Row[]> {
  const what = maxOutputBytes === null ? 'cut at 64 MiB' : 'complete'
  const tickers = await Promise.all([startTicker(fleet, 'host1'), startTicker(fleet, 'host2')])
  await setTimeout(settle)
  const watches = [fleet.agents[0], fleet.child].map((child) => watchMemory(child?.pid))
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
  const memory = watches.map((watch) => ({ idle: watch.idle, peak: watch.stop() }))
  const delays = tickers.map((one) => [...one.delays])
  await Promise.all(tickers.map((ticker) => ticker.stop()))
  const [result] = task['results'] as { stdoutBytes: number; status: string; truncated: boolean }[]
  process.stderr.write(`1 GiB, ${what}: ${seconds.toFixed(1)} s, ${JSON.stringify(result)}\n`)
  const rows: Row[] = memory.map(({ idle, peak }, at) => ({
    name: `RSS of the ${at === 0 ? 'agent' : 'server'} in a 1 GiB flood, ${what}, vs idle`,
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
      name: `delay of a line on ${at === 0 ? 'the same' : 'another'} host meanwhile, p99 vs median of ${of.length}`,
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
