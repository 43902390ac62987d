import type { Query } from '../../../src/server/storage/ports/store.ts'
import type { Database } from '../../../src/server/storage/postgres/connection/database.ts'
import { type AnyQuery, statementOf } from '../../../src/server/storage/postgres/store/reads.ts'
import type { Noun } from '../../../src/server/storage/records/records.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import { atExit, sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'

const count = 100_000
const part = 5000
const shown = 20

interface Plan {
  'Node Type': string
  'Actual Rows': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  'Heap Fetches'?: number
  Plans?: Plan[]
}

/** A plan node and its descendants. */
function* nodes(plan: Plan): Generator<Plan> {
  yield plan
  for (const below of plan.Plans ?? []) yield* nodes(below)
}

/** Rows read from tables, without rows that only an index answers. */
const rowsRead = (plan: Plan): number =>
  [...nodes(plan)]
    .filter((node) => ['Seq Scan', 'Index Scan', 'Bitmap Heap Scan'].includes(node['Node Type']))
    .map(
      (node) =>
        node['Actual Rows'] +
        (node['Rows Removed by Filter'] ?? 0) +
        (node['Rows Removed by Index Recheck'] ?? 0),
    )
    .reduce((sum, rows) => sum + rows, 0)

async function planOf<N extends Noun>(database: Database, noun: N, query: Query<N>): Promise<Plan> {
  const { text, values } = statementOf(noun, query as AnyQuery)
  const [row] = await database.ask<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
    'api',
    `explain (analyze, format json) ${text}`,
    values,
  )
  if (!row) throw new Error('explain returned no plan')
  return row['QUERY PLAN'][0].Plan
}

/** Tasks of 30 days: one in a hundred failed; each ran on one of 1,000 hosts and on hosts 5000 to 5003. */
async function fill(database: Database): Promise<void> {
  const block = 2 ** 32
  // In parts, because a statement has a few seconds.
  for (let first = 1; first <= count; first += part)
    await database.ask(
      'api',
      `insert into rsm.tasks(id, rec, status, "scriptId", "clusterId", "createdBy", "hostSet", "completedAt")
    select 't' || lpad(n::text, 8, '0'), json_build_object('id', 't' || lpad(n::text, 8, '0'), 'content', repeat('x', 800)),
      case when n % 100 = 0 then 'FAILED' else 'SUCCESS' end, n % 50, null, 'user' || n % 20,
      array[${block} + n % 1000, ${block / 4} + 1250], '2026-01-' || lpad((1 + n / 3500)::text, 2, '0')
    from generate_series(${first}, ${first + part - 1}) n`,
    )
  await database.ask('api', 'vacuum analyze rsm.tasks')
}

const postgres = sharedPostgres()
let filled: Promise<Database> | undefined
async function database(): Promise<Database> {
  filled ??= postgres.then(async (server) => {
    const own = openDatabase({ teardown: (end) => atExit(() => void end()) }, await server.database())
    await fill(own)
    return own
  })
  return filled
}

const lists: readonly (readonly [string, Query<'tasks'>])[] = [
  ['all', {}],
  ['tasks of a status', { where: { equals: { status: 'FAILED' } } }],
  ['tasks of a common status', { where: { equals: { status: 'SUCCESS' } } }],
  ['tasks of a script', { where: { equals: { scriptId: 7 } } }],
  ['tasks of a user', { where: { equals: { createdBy: 'user3' } } }],
  ['tasks of a host', { where: { has: { hostSet: [7] } } }],
  ['tasks of a host between other hosts of each task', { where: { has: { hostSet: [900] } } }],
  ['tasks of a host in a status', { where: { equals: { status: 'FAILED' }, has: { hostSet: [7] } } }],
]

for (const [title, query] of lists)
  test(`a page of 100,000 tasks reads little more than it shows: ${title}`, async (t) => {
    const plan = await planOf(await database(), 'tasks', { ...query, order: 'desc', limit: shown, offset: 0 })
    t.true(rowsRead(plan) < count / 100, JSON.stringify(plan, null, 1))
    const counted = [...nodes(plan)].find((node) => node['Node Type'] === 'Index Only Scan')
    if (query.where?.has) t.is(counted, undefined)
    else t.is(counted?.['Heap Fetches'], 0, 'the count is read from an index')
  })

test('a page of a host that ran all 100,000 tasks reads each once', async (t) => {
  const where = { has: { hostSet: [5001] } }
  const plan = await planOf(await database(), 'tasks', { where, order: 'desc', limit: shown, offset: 0 })
  t.true(rowsRead(plan) <= count + shown, JSON.stringify(plan, null, 1))
})

test('expired tasks are found by an index', async (t) => {
  const plan = await planOf(await database(), 'tasks', { where: { before: { completedAt: '2026-01-02' } } })
  t.true(rowsRead(plan) < count / 20, JSON.stringify(plan, null, 1))
})
