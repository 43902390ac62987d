import { fdatasync, write } from 'node:fs'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { openJsonStore } from '../src/server/storage/files/store/store.ts'
import type { Store } from '../src/server/storage/ports/store.ts'
import type { TaskRecord } from '../src/server/storage/records/task.ts'
import { task } from '../test/helpers/servers/store-records.ts'
import { inTurn, median, ratioRow } from './measure.ts'
import type { Row } from './row.ts'

const rounds = 5
const writesPerRound = 10_000
const goal = 0.5

let lastTask = 0

/** Ascending and of constant length, as task ids are. */
function nextTaskId(): string {
  return String(++lastTask).padStart(20, '0')
}

/** Runs `writesPerRound` writes from this number of callers, each waiting for its own; returns writes per second. */
async function rate(writers: number, put: () => Promise<unknown>): Promise<number> {
  const turns = Math.ceil(writesPerRound / writers)
  const start = performance.now()
  await Promise.all(
    Array.from({ length: writers }, async () => {
      for (let turn = 0; turn < turns; turn++) await put()
    }),
  )
  return (turns * writers) / ((performance.now() - start) / 1000)
}

/** Minimal group commit: appends the waiting lines, one fdatasync, resolves all. */
async function bareGroupCommit(path: string) {
  const handle = await open(path, 'a', 0o600)
  const sync = promisify(fdatasync)
  let waiting: { line: string; resolve: () => void }[] = []
  let running = false
  async function run(): Promise<void> {
    running = true
    while (waiting.length > 0) {
      await setImmediate()
      const batch = waiting
      waiting = []
      const data = Buffer.from(batch.map(({ line }) => line).join(''))
      await new Promise<void>((resolve, reject) =>
        write(handle.fd, data, (error) => (error === null ? resolve() : reject(error))),
      )
      await sync(handle.fd)
      for (const { resolve } of batch) resolve()
    }
    running = false
  }
  return {
    append: (line: string) =>
      new Promise<void>((resolve, reject) => {
        waiting.push({ line, resolve })
        if (!running) run().catch(reject)
      }),
    close: () => handle.close(),
  }
}

/**
 * Acknowledged writes per second vs a bare loop that appends the same records as JSON lines, with the same concurrency on the
 * same disk; medians of interleaved rounds (reliability L03).
 */
export async function benchStore(): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-store-'))
  const store = await openJsonStore({ directory: join(directory, 'store') })
  const bare = await bareGroupCommit(join(directory, 'bare.jsonl'))
  const rows: Row[] = []
  try {
    for (const writers of [8, 64]) {
      const ours: number[] = []
      const baseline: number[] = []
      // The first round warms up the compiler and is not counted.
      for (let round = 0; round <= rounds; round++) {
        const bareRate = await rate(writers, () => bare.append(`${JSON.stringify(task(nextTaskId()))}\n`))
        const ownRate = await rate(writers, () => store.transact((tx) => tx.put('tasks', task(nextTaskId()))))
        if (round === 0) continue
        baseline.push(bareRate)
        ours.push(ownRate)
      }
      const ratio = median(ours) / median(baseline)
      rows.push({
        name: `acknowledged writes, ${writers} writers, vs bare group commit`,
        ours: median(ours),
        baseline: median(baseline),
        unit: 'writes/s',
        ratio,
        goal: `≥ ${goal} ×`,
        met: ratio >= goal,
      })
    }
    rows.push(await benchPages(store))
  } finally {
    await store.close()
    await bare.close()
    await rm(directory, { recursive: true })
  }
  return rows
}

const listed = 100_000
const pagesPerRound = 500

/** Pages per second of a filtered list of 100,000 tasks vs an array that is filtered for each page. */
async function benchPages(store: Store): Promise<Row> {
  const bare: TaskRecord[] = []
  for (let from = 0; from < listed; from += 1000) {
    const some = Array.from({ length: 1000 }, (_, at) =>
      task(`list-${nextTaskId()}`, { status: 'FAILED', scriptId: at % 50 }),
    )
    bare.push(...some)
    await store.transact((tx) => {
      for (const record of some) tx.put('tasks', record)
    })
  }
  const offset = (turn: number) => (turn % 50) * 20
  const where = { equals: { scriptId: 7 } }
  const pages = async (page: (from: number) => unknown) => {
    const start = performance.now()
    for (let turn = 0; turn < pagesPerRound; turn++) await page(offset(turn))
    return pagesPerRound / ((performance.now() - start) / 1000)
  }
  const measured = await inTurn(
    rounds,
    () => pages((from) => store.query('tasks', { where, offset: from, limit: 20 })),
    () => pages((from) => bare.filter(({ scriptId }) => scriptId === 7).slice(from, from + 20)),
  )
  const name = 'pages of a filter on 100,000 tasks, vs filtering a bare array'
  return ratioRow(name, 'pages/s', measured, { atLeast: 20 })
}
