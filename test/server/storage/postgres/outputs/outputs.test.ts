import type { ExecutionContext } from 'ava'
import { systemClock } from '../../../../../src/disk/clock.ts'
import { createLog, type Log } from '../../../../../src/disk/log.ts'
import { firstDigits, opaqueId } from '../../../../../src/server/storage/ids.ts'
import { createLocalHints } from '../../../../../src/server/storage/local-hints.ts'
import {
  createDatabase,
  type Database,
} from '../../../../../src/server/storage/postgres/connection/database.ts'
import { dayAt, openDaysAhead, textOfTable } from '../../../../../src/server/storage/postgres/outputs/days.ts'
import { createPostgresOutputs } from '../../../../../src/server/storage/postgres/outputs/outputs.ts'
import { entry, outputsContract } from '../../../../contracts/outputs.ts'
import { dumping } from '../../../../helpers/servers/dumping.ts'
import { patientAddress } from '../../../../helpers/servers/patient-address.ts'
import { sharedPostgres, postgresTest as test } from '../../../../helpers/servers/postgres.ts'
import { until } from '../../../../helpers/until.ts'

const postgres = sharedPostgres()
const day = 24 * 3600_000

async function opened(t: ExecutionContext, url?: string) {
  const address = patientAddress(url ?? (await (await postgres).database()))
  const database = createDatabase(address, 'test', createLog('ERROR'))
  t.teardown(() => database.close())
  return { database, outputs: createPostgresOutputs(database, createLocalHints()) }
}

outputsContract(test, async (t) => {
  const { database, outputs } = await opened(t)
  return { outputs, reopen: async () => createPostgresOutputs(database, createLocalHints()) }
})

const tablesOf = async (database: Database) =>
  (
    await database.ask<{ relname: string }>(
      'api',
      `select relname from pg_class where relname like 'outputs\\_2%' and relkind = 'r' order by 1`,
    )
  ).map(({ relname }) => relname)

test('output that arrives as JSON is stored and read unchanged', async (t) => {
  const { outputs } = await opened(t)
  const json = Buffer.from('"\\u0061\\u0000\\ud800 \\/ ä"')
  await outputs.append('task', entry(0, JSON.parse(json.toString()), { json }))
  const { lines } = await outputs.readLines('task', { after: 0, limit: 5 })
  t.is(
    lines[0]?.json.toString(),
    `{"hostId":1,"stream":"stdout","sequence":0,"timestamp":"2026-01-01T00:00:00.000Z","data":${json.toString()}}`,
  )
  t.is((await outputs.read('task', { after: 0, limit: 5 })).entries[0]?.data, 'a\0\ud800 / ä')
})

test('a read stops at about 256 KiB, forwards and backwards, and continues from its position', async (t) => {
  const { outputs } = await opened(t)
  const data = 'x'.repeat(100_000)
  for (let n = 0; n < 7; n++) await outputs.append('task', entry(n, data))
  const seen: number[] = []
  for (let after = 0; ; ) {
    const { entries, next } = await outputs.read('task', { after, limit: 500 })
    t.true(entries.length <= 3)
    if (next === after) break
    seen.push(...entries.map(({ sequence }) => sequence))
    after = next
  }
  t.deepEqual(seen, [0, 1, 2, 3, 4, 5, 6])
  const back = await outputs.readBefore('task', { before: Number.MAX_SAFE_INTEGER, limit: 500 })
  t.deepEqual(
    back.entries.map(({ sequence }) => sequence),
    [4, 5, 6],
  )
  t.deepEqual(
    (await outputs.readBefore('task', { before: back.previous, limit: 2 })).entries.map(
      ({ sequence }) => sequence,
    ),
    [2, 3],
  )
})

test('output of one host among many is found beyond the range of one statement', async (t) => {
  const { outputs } = await opened(t)
  const others = 66_000
  await Promise.all(Array.from({ length: others }, (_, n) => outputs.append('task', entry(n, ''))))
  const lastOfOthers = await outputs.cursorBeforeLast('task', 0, {})
  await outputs.append('task', entry(0, 'here', { hostId: 2 }))
  const read = await outputs.read('task', { after: 0, limit: 5, hostId: 2 })
  t.deepEqual(
    read.entries.map(({ data }) => data),
    ['here'],
  )
  t.deepEqual(await outputs.read('task', { after: read.next, limit: 5, hostId: 2 }), {
    entries: [],
    next: read.next,
  })
  const none = await outputs.read('task', { after: 0, limit: 5, hostId: 3 })
  const end = await outputs.cursorBeforeLast('task', 0, {})
  t.deepEqual(none, { entries: [], next: end })
  await outputs.append('task', entry(1, 'and here', { hostId: 1 }))
  t.is(await outputs.cursorBeforeLast('task', 2, { hostId: 2 }), 0)
  const before = await outputs.cursorBeforeLast('task', 1, { hostId: 2 })
  t.true(before >= lastOfOthers && before < end)
})

test('each day of tasks has a table, created by the first writer and dropped with its last task', async (t) => {
  const url = await (await postgres).database()
  const [a, b] = [await opened(t, url), await opened(t, url)]
  const now = Date.now()
  const at = (days: number) => opaqueIdAt(now - days * day)
  const old = [at(40), at(40)]
  const young = at(0)
  await Promise.all(
    [...old, young].flatMap((id) => [a, b].map(({ outputs }, n) => outputs.append(id, entry(n, 'x')))),
  )
  t.is((await tablesOf(a.database)).length, 2)
  t.deepEqual(await b.outputs.read(at(20), { after: 0, limit: 5 }), { entries: [], next: 0 })
  const [first = '', second = ''] = old
  t.is(await a.outputs.size(first), 2 * (3 + 128))
  await a.outputs.forget(first)
  t.is(await a.outputs.size(first), 0)
  t.deepEqual((await b.outputs.read(first, { after: 0, limit: 5 })).entries, [])
  t.is((await b.outputs.read(second, { after: 0, limit: 5 })).entries.length, 2)
  await a.outputs.forget(second)
  t.is((await tablesOf(a.database)).length, 1)
  t.deepEqual((await b.outputs.read(second, { after: 0, limit: 5 })).entries, [])
  await a.outputs.forget(young)
  t.is((await tablesOf(a.database)).length, 1, 'tasks of this day may still start')
})

test('space of forgotten output is freed at once if large, else after two days while its day has other tasks', async (t) => {
  const { database, outputs } = await opened(t)
  const id = () => opaqueId(Date.now())
  const [stays, small, large, later] = [id(), id(), id(), id()]
  for (const one of [stays, small, large, later]) await outputs.append(one, entry(0, 'x'))
  await database.ask('api', 'update rsm.output_heads set bytes = 1e9 where task_id = $1', [large])
  const rows = async () =>
    (await database.ask<{ task_id: string }>('api', 'select task_id from rsm.outputs order by 1')).map(
      ({ task_id }) => task_id,
    )
  for (const one of [small, large]) await outputs.forget(one)
  t.deepEqual(await rows(), [stays, small, later])
  await database.ask('api', `update rsm.outputs_forgotten set at = at - interval '3 days'`)
  await outputs.forget(later)
  t.deepEqual(await rows(), [stays, later])
})

test('during a pg_dump, output of the next two days is accepted and forgotten output is removed afterwards', async (t) => {
  const { database, outputs } = await opened(t)
  const ahead = await openDaysAhead({ database, clock: systemClock, log: createLog('ERROR') })
  t.teardown(() => ahead.close())
  t.is((await tablesOf(database)).length, 3)
  const at = (days: number) => opaqueIdAt(Date.now() + days * day)
  const [first, last, next] = [at(-40), at(-40), at(2)]
  for (const id of [first, last]) await outputs.append(id, entry(0, 'x'))
  await outputs.forget(first)
  const end = await dumping(t, database, 'rsm.outputs')
  await outputs.append(next, entry(0, 'x'))
  await outputs.forget(last)
  t.is((await tablesOf(database)).length, 4, 'its table is being read')
  await end()
  await database.ask('api', `update rsm.outputs_forgotten set at = at - interval '3 days'`)
  await outputs.forget(next)
  t.is((await tablesOf(database)).length, 3)
})

test('servers that create the tables of the next days at the same time log no warning', async (t) => {
  const { database } = await opened(t)
  const warnings: unknown[] = []
  const log = { ...createLog('ERROR'), warn: (...said: unknown[]) => void warnings.push(said) } as Log
  const other = await database.connect()
  t.teardown(() => other.end())
  await other.query('begin')
  await other.query(textOfTable(dayAt(Date.now())))
  const opening = openDaysAhead({ database, clock: systemClock, log })
  await until('it waits for the other server', async () => {
    const text = `select from pg_locks join pg_database on pg_database.oid = database
      where not granted and datname = current_database()`
    return (await database.ask('api', text)).length > 0
  })
  await other.query('commit')
  const ahead = await opening
  t.teardown(() => ahead.close())
  t.deepEqual(warnings, [])
  t.is((await tablesOf(database)).length, 3)
})

/** An id created at this time; `opaqueId` only ascends within a process. */
function opaqueIdAt(time: number): string {
  const first = opaqueId(0)
  return firstDigits(time) + first.slice(10)
}
