import type { ExecutionContext } from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import type { Database } from '../../../src/server/storage/postgres/connection/database.ts'
import { createWaitingCounts } from '../../../src/server/storage/postgres/executions/queries.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { executingServer } from '../../helpers/servers/shared-executions.ts'
import { sharedStore } from '../../helpers/servers/shared-store.ts'
import { execution, task } from '../../helpers/servers/store-records.ts'

const postgres = sharedPostgres()
const dueAt = '2026-01-01T00:00:00.000Z'

/** A server with a clock that only `pass` and `slow` (milliseconds per statement) advance. */
async function site(t: ExecutionContext) {
  const shared = await sharedStore(await postgres, (ending) => t.teardown(ending))
  const server = await executingServer(shared, 'server', createLocalHints())
  t.teardown(() => server.close())
  let now = 0
  const seen = { statements: 0, slow: 0, isAway: false }
  const database: Database = {
    ...server.database,
    async ask(pool, statement, values) {
      seen.statements++
      if (seen.isAway) throw new RsmError('unavailable', 'the store is unavailable')
      const rows = await server.database.ask<never>(pool, statement, values)
      now += seen.slow
      return rows
    },
  }
  const waitingOn = createWaitingCounts(database, { ...server.clock, monotonic: () => now })
  const pass = (milliseconds: number) => {
    now += milliseconds
  }
  let tasks = 0
  /** Creates a task that is pending for these hosts. */
  const wait = async (...hostIds: number[]) => {
    const id = `t${tasks++}`
    const all = hostIds.map((hostId, position) => ({ ...execution(id, hostId), position, dueAt }))
    await server.executions.create(task(id, { hostCount: all.length }), all, async () => null)
  }
  const waiting = (...hostIds: number[]) => Promise.all(hostIds.map(waitingOn))
  return { seen, pass, wait, waiting }
}

test('concurrent calls share one statement, whose result is cached for a second and then read again', async (t) => {
  const { seen, pass, wait, waiting } = await site(t)
  await wait(1, 2)
  await wait(2)
  t.deepEqual(await waiting(1, 2, 3, ...Array(500).fill(2)), [1, 2, 0, ...Array(500).fill(2)])
  t.is(seen.statements, 1)
  await wait(3)
  pass(999)
  t.deepEqual(await waiting(1, 2, 3), [1, 2, 0])
  t.is(seen.statements, 1)
  pass(1)
  t.deepEqual(await waiting(1, 2, 3), [1, 2, 1])
  t.is(seen.statements, 2)
})

test('counts that take long to read are cached longer, up to 10 s', async (t) => {
  const { seen, pass, wait, waiting } = await site(t)
  const tried = [
    { slow: 300, kept: 6000 },
    { slow: 3000, kept: 10_000 },
  ]
  for (const [created, { slow, kept }] of tried.entries()) {
    seen.slow = slow
    t.deepEqual(await waiting(1), [created])
    await wait(1)
    pass(kept - slow - 1)
    t.deepEqual(await waiting(1), [created])
    t.is(seen.statements, created + 1)
    pass(1)
  }
  t.deepEqual(await waiting(1), [tried.length])
})

test('while PostgreSQL is down every caller gets the error, and the next call reads again', async (t) => {
  const { seen, pass, wait, waiting } = await site(t)
  await wait(1)
  t.deepEqual(await waiting(1), [1])
  pass(1000)
  seen.isAway = true
  const asked = await Promise.allSettled([waiting(1), waiting(2)])
  t.deepEqual(
    asked.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  t.is(seen.statements, 2)
  seen.isAway = false
  t.deepEqual(await waiting(1), [1])
})
