import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type BenchServer, startServer } from '../fleet/server.ts'
import { median, residentMB, wholeProcess } from '../measure.ts'
import type { Row } from '../row.ts'

const tasks = 100_000
const starts = 3
const settle = 5000
const requests = 15
const startBound = 5000
const memoryBound = 300
const listBound = 50
const lists = ['', '&status=FAILED', '&createdBy=alice.liddell', '&scriptId=7']

/** Peak resident memory of a process in megabytes. */
function peakMB(pid: number | undefined): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid ?? 'self'}/status`, 'utf8'))?.[1]) / 1024
}

/** Milliseconds of the slowest request, including the first one on cold code. */
async function slowest(server: BenchServer, path: string): Promise<number> {
  const times: number[] = []
  for (let request = 0; request < requests; request++) {
    const start = performance.now()
    await server.call('GET', path)
    times.push(performance.now() - start)
  }
  return Math.max(...times)
}

interface Figures {
  startedIn: number
  peak: number
  settled: number
  lists: number[]
}

async function figures(dataDir: string): Promise<Figures> {
  const server = await startServer(dataDir)
  try {
    const peak = peakMB(server.child.pid)
    await setTimeout(settle)
    const settled = residentMB(server.child.pid)
    const slow: number[] = []
    for (const filter of lists) slow.push(await slowest(server, `/api/tasks?size=20${filter}`))
    return { startedIn: server.startedIn, peak, settled, lists: slow }
  } finally {
    await server.stop()
  }
}

function boundRow(name: string, unit: string, ours: number[], baseline: number[], bound: number): Row {
  const [mine, bare] = [median(ours), median(baseline)]
  const spread = `${Math.min(...ours).toFixed(0)}–${Math.max(...ours).toFixed(0)} ${unit}`
  const worst = Math.max(...ours)
  const goal = `< ${bound} ${unit}`
  return { name, ours: mine, baseline: bare, unit, ratio: mine / bare, spread, goal, met: worst < bound }
}

/** A server with many finished tasks in its store vs one with an empty store (reliability L04). */
export async function benchHistory(): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-history-'))
  const [full, empty] = [join(directory, 'full'), join(directory, 'empty')]
  try {
    for (const dataDir of [full, empty]) await mkdir(dataDir, { mode: 0o700 })
    const program = fileURLToPath(new URL('seed.js', import.meta.url))
    await wholeProcess(process.execPath, [program, join(full, 'store'), String(tasks)])
    const ours: Figures[] = []
    const baseline: Figures[] = []
    for (let start = 0; start < starts; start++) {
      ours.push(await figures(full))
      baseline.push(await figures(empty))
    }
    const both = (value: (one: Figures) => number) => [ours.map(value), baseline.map(value)] as const
    const of = `${tasks} finished tasks, vs none`
    return [
      boundRow(`start with ${of}`, 'ms', ...both((one) => one.startedIn), startBound),
      boundRow(`resident after the start with ${of}`, 'MB', ...both((one) => one.settled), memoryBound),
      boundRow(`resident at most with ${of}`, 'MB', ...both((one) => one.peak), memoryBound),
      ...lists.map((filter, index) =>
        boundRow(
          `slowest GET /api/tasks?size=20${filter}, ${tasks} vs none`,
          'ms',
          ...both((one) => one.lists[index] ?? Number.NaN),
          listBound,
        ),
      ),
    ]
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
