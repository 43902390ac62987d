import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LogEntry } from '../../src/core/protocol/http/logs.ts'
import { type Fleet, startFleet } from '../fleet/fleet.ts'
import { inTurn, ratioRow } from '../measure.ts'
import { megabyte, writeLines } from '../output/lines.ts'
import type { Row } from '../row.ts'
import { startShared } from './shared.ts'

const hosts = 3
const rounds = 3
/** Megabytes per host. */
const megabytes = 32
/** Megabytes per second. */
const leastRate = 20

const order = (path: string) => ({ script: { content: `cat ${path}` }, target: { selector: '@*' } })

/** Megabytes per second, from the call until all output is stored. */
async function store(fleet: Fleet, path: string): Promise<number> {
  const start = performance.now()
  const task = await fleet.call('POST', '/api/tasks', { ...order(path), async: false })
  const seconds = (performance.now() - start) / 1000
  const results = task['results'] as { stdoutBytes: number; outputComplete: boolean }[]
  const whole = results.filter((one) => one.outputComplete && one.stdoutBytes === megabytes * megabyte)
  if (whole.length !== hosts)
    throw new Error(`the output of ${whole.length} hosts is complete, not of ${hosts}`)
  return (hosts * megabytes) / seconds
}

/** Reads the output at another server while it is written, page by page, and counts missing entries. */
async function missed(fleet: Fleet, path: string): Promise<{ gaps: number; entries: number }> {
  const reader = fleet.servers.at(-1) ?? fleet
  const { taskId } = await fleet.call('POST', '/api/tasks', order(path))
  const next = new Map<number, number>()
  let entries = 0
  let gaps = 0
  for (let after = 0, isOver = false; ; ) {
    const page = await reader.call('GET', `/api/tasks/${String(taskId)}/logs?after=${after}`)
    const read = page['entries'] as LogEntry[]
    for (const { hostId, sequence } of read) {
      gaps += Math.abs(sequence - (next.get(hostId) ?? 0))
      next.set(hostId, sequence + 1)
    }
    entries += read.length
    after = Number(page['next'])
    if (read.length > 0) continue
    // A page that is empty after the end stays empty.
    if (isOver) return { gaps, entries }
    const { status } = await reader.call('GET', `/api/tasks/${String(taskId)}?size=1`)
    isOver = status !== 'RUNNING'
  }
}

/** Output of hosts on three servers into one task vs three hosts on a server of the file store (reliability L07). */
export async function benchSharedOutput(): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-shared-output-'))
  const path = join(directory, 'large')
  await writeLines(path, megabytes)
  const fleets: Fleet[] = []
  try {
    const shared = await startFleet(hosts, () => startShared(hosts))
    fleets.push(shared)
    const onFiles = await startFleet(hosts)
    fleets.push(onFiles)
    const measured = await inTurn(
      rounds,
      () => store(shared, path),
      () => store(onFiles, path),
    )
    const { gaps, entries } = await missed(shared, path)
    const name = 'PostgreSQL: output into one task from three servers'
    const row = ratioRow(`${name}, vs the file store`, 'MB/s', measured, { atLeast: 0 })
    return [
      { ...row, goal: `≥ ${leastRate} MB/s`, met: measured.ours >= leastRate },
      {
        name: `${name}: entries missed by a concurrent reader, of all`,
        unit: 'entries',
        ours: gaps,
        baseline: entries,
        ratio: gaps / entries,
        goal: '0',
        met: gaps === 0 && entries > 0,
      },
    ]
  } finally {
    for (const fleet of fleets) await fleet.stop()
    await rm(directory, { recursive: true, force: true })
  }
}
