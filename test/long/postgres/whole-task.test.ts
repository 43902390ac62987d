import type { ExecutionContext } from 'ava'
import { isFinal } from '../../../src/core/tasks/task.ts'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import type { Ask, Database } from '../../../src/server/storage/postgres/connection/database.ts'
import { rowsAtOnce } from '../../../src/server/storage/postgres/executions/rows.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { executingServer } from '../../helpers/servers/shared-executions.ts'
import { sharedStore } from '../../helpers/servers/shared-store.ts'
import { execution, task } from '../../helpers/servers/store-records.ts'
import { until } from '../../helpers/until.ts'

const postgres = sharedPostgres()
const dueAt = '2026-01-01T00:00:00.000Z'
const hostCount = 10_000
const hostIds = Array.from({ length: hostCount }, (_, n) => n + 1)
/** The position of a host in the plan: the reverse of the hosts' order. */
const placeOf = (hostId: number) => hostCount - hostId

/**
 * A server with a started task on many hosts, which it owns. It counts the rows that each statement returns or moves.
 */
async function site(t: ExecutionContext) {
  const shared = await sharedStore(await postgres, (ending) => t.teardown(ending))
  const seen = { statements: 0, mostRows: 0 }
  /** Runs once, right after the first statement with this name. */
  const afterFirst: { name: string; run: (() => Promise<unknown>) | null } = { name: '', run: null }
  const counting =
    (ask: Ask): Ask =>
    async <R extends object>(...[statement, values]: Parameters<Ask>) => {
      const rows = await ask<R>(statement, values)
      // A statement that returns `count` moved that number of rows.
      const moved = rows.reduce(
        (sum, row) => sum + ('last' in row && 'count' in row ? Number(row.count) : 0),
        0,
      )
      seen.statements++
      seen.mostRows = Math.max(seen.mostRows, rows.length, moved)
      const { name, run } = afterFirst
      if (run === null || typeof statement === 'string' || statement.name !== name) return rows
      afterFirst.run = null
      await run()
      return rows
    }
  const through = (database: Database): Database => ({
    ...database,
    ask: (pool, statement, values) => counting((...asked) => database.ask(pool, ...asked))(statement, values),
    transaction: (pool, work, isolation) =>
      database.transaction(pool, (ask) => work(counting(ask)), isolation),
  })
  const server = await executingServer(shared, 'server', createLocalHints(), through)
  t.teardown(() => server.close())
  const { executions, ownership } = server
  const member = await ownership.join('server')
  const renewing = setInterval(() => void ownership.renew(member).catch(() => undefined), 2000)
  t.teardown(() => clearInterval(renewing))
  await ownership.claim(member, ['t1'])
  const all = hostIds.map((hostId) => ({ ...execution('t1', hostId), position: placeOf(hostId), dueAt }))
  await executions.create(task('t1', { hostCount }), all.toReversed(), async () => null)
  /** Runs `work` and checks that its statements had a page each at most, and that there was at least one per page. */
  async function paged<T>(work: () => Promise<T>): Promise<T> {
    Object.assign(seen, { statements: 0, mostRows: 0 })
    const answer = await work()
    t.true(seen.mostRows <= rowsAtOnce, `a statement had ${seen.mostRows} rows`)
    t.true(seen.statements >= hostCount / rowsAtOnce, `there were ${seen.statements} statements`)
    return answer
  }
  return { ...server, member, paged, afterFirst, ask: shared.ask }
}

test('a task of many hosts is read, changed, followed and ended in pages, in the order of its plan', async (t) => {
  const { executions, results, member, paged } = await site(t)
  const inPlan = hostIds.toReversed()
  const hostsOf = (all: readonly { execution: { hostId: number } }[]) =>
    all.map((one) => one.execution.hostId)
  t.deepEqual(hostsOf(await paged(() => executions.page('t1'))), inPlan)
  t.deepEqual(
    hostsOf(await paged(() => executions.page('t1', { hostIds }))).toSorted((a, b) => a - b),
    hostIds,
  )
  const { cursor } = await executions.changes('t1', 0)
  t.is((await paged(() => executions.cancel('t1'))).length, hostCount)
  const news = await paged(() => executions.changes('t1', cursor))
  t.is(news.executions.length, hostCount)
  t.true(news.executions.every(({ status }) => status === 'CANCELLED'))
  // Changes are repeated while the database server has an older transaction, including those of other tests.
  let { cursor: last } = news
  await until('no change is repeated', async () => {
    const more = await executions.changes('t1', last)
    last = more.cursor
    return more.executions.length === 0
  })
  t.is((await paged(() => executions.finish(member, 't1')))?.counts?.CANCELLED, hostCount)
  t.deepEqual(await executions.page('t1'), [])
  const ended = await paged(() => results.read('t1'))
  t.deepEqual(
    ended?.results.map(({ hostId }) => hostId),
    inPlan,
  )
})

test('reading a task that ends between two pages returns nothing rather than a part', async (t) => {
  const { executions, results, member, afterFirst } = await site(t)
  await executions.cancel('t1')
  Object.assign(afterFirst, { name: 'executions of task', run: () => executions.finish(member, 't1') })
  t.deepEqual(await executions.page('t1'), [])
  t.is((await results.read('t1'))?.results.length, hostCount)
})

test('a change made while changes are read is among them or among the next ones', async (t) => {
  const { executions, afterFirst, ask } = await site(t)
  await executions.cancel('t1')
  const change = (hostId: number) =>
    ask(
      'api',
      `update rsm.executions set rec = rec || '{"error": "later"}', rev = rev + 1, xid = pg_current_xact_id()
        where task_id = 't1' and host_id = $1`,
      [hostId],
    )
  Object.assign(afterFirst, {
    name: 'executions changes',
    run: () => Promise.all([change(1), change(hostCount)]),
  })
  const news = await executions.changes('t1', 0)
  t.is(news.executions.length, hostCount)
  t.is(new Set(news.executions.map(({ hostId }) => hostId)).size, hostCount)
  t.true(news.executions.every(({ status }) => isFinal(status)))
  const later = [...news.executions, ...(await executions.changes('t1', news.cursor)).executions]
  const known = new Map(later.map((one) => [one.hostId, one.error]))
  t.deepEqual([known.get(1), known.get(hostCount), known.get(2)], ['later', 'later', null])
})
