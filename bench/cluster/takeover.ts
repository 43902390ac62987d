import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { settleTime } from '../../src/server/storage/postgres/ownership/lives.ts'
import { startFleet } from '../fleet/fleet.ts'
import { median } from '../measure.ts'
import type { Row } from '../row.ts'
import { type Shared, startShared } from './shared.ts'

const lookEvery = 5
const patience = 60_000
const victim = 1

interface Loss {
  readonly name: string
  readonly signal: 'SIGKILL' | 'SIGSTOP'
  readonly rounds: number
  /** Milliseconds. */
  readonly most: number
}

const losses: readonly Loss[] = [
  { name: 'a killed server', signal: 'SIGKILL', rounds: 5, most: 2_000 },
  // The sockets stay open, as with a machine that disappears.
  { name: 'a lost machine (SIGSTOP)', signal: 'SIGSTOP', rounds: 2, most: 15_000 },
]

/** Milliseconds until the database has a new owner for a task of the victim. */
async function lose(shared: Shared, watcher: pg.Client, signal: Loss['signal']): Promise<number> {
  const server = shared.servers[victim]
  if (!server) throw new Error('no second server')
  const { taskId } = await server.call('POST', '/api/tasks', {
    script: { content: 'sleep 120' },
    target: { selector: '@*' },
  })
  const epoch = async () => {
    const text = 'select epoch from rsm.task_owners where task_id = $1'
    const { rows } = await watcher.query<{ epoch: string }>(text, [taskId])
    return rows[0]?.epoch
  }
  const own = await epoch()
  if (own === undefined) throw new Error(`task ${String(taskId)} has no owner`)
  const from = performance.now()
  server.child.kill(signal)
  while ((await epoch()) === own) {
    if (performance.now() - from > patience) throw new Error(`no takeover within ${patience} ms`)
    await delay(lookEvery)
  }
  const took = performance.now() - from
  await shared.servers[0]?.call('POST', `/api/tasks/${String(taskId)}/cancel`)
  await server.stop()
  await shared.startAgain(victim)
  return took
}

async function lossRow(
  shared: Shared,
  watcher: pg.Client,
  { name, signal, rounds, most }: Loss,
): Promise<Row> {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) times.push(await lose(shared, watcher, signal))
  const slowest = Math.max(...times)
  return {
    name: `PostgreSQL: the slowest of ${rounds} takeovers from ${name}, vs the bound`,
    unit: 'ms',
    ours: slowest,
    baseline: most,
    ratio: slowest / most,
    spread: `median ${median(times).toFixed(0)}`,
    goal: `≤ ${most} ms`,
    met: slowest <= most,
  }
}

/** From the loss of a server to a new owner of its task, with the agent linked to the remaining server (reliability L08). */
export async function benchTakeover(): Promise<Row[]> {
  const shared = await startShared(2)
  const fleet = await startFleet(1, () => Promise.resolve(shared))
  const watcher = new pg.Client({ connectionString: shared.store })
  try {
    await watcher.connect()
    // A server that has just started does not judge by locks.
    await delay(settleTime)
    const rows: Row[] = []
    for (const loss of losses) rows.push(await lossRow(shared, watcher, loss))
    return rows
  } finally {
    await watcher.end()
    await fleet.stop()
  }
}
