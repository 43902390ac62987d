import type { ExecutionContext } from 'ava'
import type { Clock } from '../../../src/disk/clock.ts'
import { createLog } from '../../../src/disk/log.ts'
import type { History } from '../../../src/server/storage/ports/presence.ts'
import type { Database } from '../../../src/server/storage/postgres/connection/database.ts'
import { createHistory } from '../../../src/server/storage/postgres/history.ts'
import { packFinished } from '../../../src/server/storage/postgres/stored-samples.ts'
import { historyContract } from '../../contracts/history.ts'
import { believed } from '../../helpers/faults/believed-clock.ts'
import { metrics } from '../../helpers/metrics/metrics.ts'
import { dumping } from '../../helpers/servers/dumping.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import {
  atExit,
  sharedPostgres,
  startPostgres,
  postgresTest as test,
} from '../../helpers/servers/postgres.ts'

const postgres = sharedPostgres()
const start = Date.parse('2026-03-10T23:30:00.000Z')
const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const iso = (at: number) => new Date(at).toISOString()
const standing: Clock = { now: () => start, monotonic: () => start }
const quiet = createLog('ERROR')

historyContract(test, async (t, clock) => {
  const database = openDatabase(t, await (await postgres).database())
  let history = createHistory({ database, clock, log: quiet })
  t.teardown(() => history.close())
  const reopen = async () => {
    await history.close()
    history = createHistory({ database, clock, log: quiet })
    return history
  }
  return { history, reopen }
})

async function timesOf(history: History, hostId: number, from = start - 30 * day, to = start + 30 * day) {
  const times: number[] = []
  for await (const { timestamp } of history.read(hostId, from, to)) times.push(Date.parse(timestamp) - start)
  return times.toSorted((a, b) => a - b)
}

/** Sets PostgreSQL's clock ahead, for this database. */
const setAhead = (database: Database, hours: number) =>
  database.ask(
    'api',
    `create or replace function rsm.now() returns timestamptz language sql volatile as $$ select clock_timestamp() + interval '${hours} hours' $$`,
  )

async function open(t: ExecutionContext) {
  const database = openDatabase(t, await (await postgres).database())
  const written = async (append: (history: History) => void) => {
    const history = createHistory({ database, clock: standing, log: quiet })
    append(history)
    await history.close()
    return history
  }
  const count = async (table: string) => (await database.ask('api', `select from rsm.${table}`)).length
  return { database, written, count }
}

test('a finished hour is packed, split at midnight, and reads the same as before', async (t) => {
  const { database, written, count } = await open(t)
  const times = Array.from({ length: 60 }, (_, n) => n * minute)
  const now = { now: () => start + hour, monotonic: () => 0 }
  const history = createHistory({ database, clock: now, log: quiet })
  for (const at of times)
    for (const hostId of [1, 2, 3])
      history.append(hostId, metrics(iso(start + at), { cpu: hostId + at / hour }))
  await history.close()
  await packFinished(database)
  t.is(await count('metrics_fresh'), 180, 'an unfinished hour stays')
  const before = []
  for await (const sample of history.read(2, 0, start * 2)) before.push(sample)

  await setAhead(database, 1)
  await written((later) => later.append(2, metrics(iso(start - hour))))
  await packFinished(database)
  t.deepEqual([await count('metrics_fresh'), await count('metrics_packed')], [1, 6])
  const after = []
  for await (const sample of history.read(2, start, start * 2)) after.push(sample)
  const byTime = (one: { timestamp: string }, other: { timestamp: string }) =>
    one.timestamp.localeCompare(other.timestamp)
  t.deepEqual(after.sort(byTime), before.sort(byTime))
  t.deepEqual(
    await timesOf(history, 2, start + 29 * minute, start + 31 * minute),
    [29, 30, 31].map((n) => n * minute),
  )

  await setAhead(database, 2)
  await packFinished(database)
  t.deepEqual([await count('metrics_fresh'), await count('metrics_packed')], [0, 7])
  t.deepEqual(await timesOf(history, 2), [-hour, ...times])
  await history.sweep(believed(() => start + 8 * day).age())
  t.deepEqual(
    await timesOf(history, 2),
    times.filter((at) => at >= 30 * minute),
  )
})

test('while pg_dump runs nothing is packed or dropped and no call fails; packing and dropping resume afterwards', async (t) => {
  const { database, written, count } = await open(t)
  const history = await written((one) => one.append(1, metrics(iso(start))))
  await setAhead(database, 1)
  const end = await dumping(t, database, 'rsm.metrics_fresh', 'rsm.metrics_packed')
  await packFinished(database)
  t.deepEqual([await count('metrics_fresh'), await count('metrics_packed')], [1, 0])
  await end()
  await packFinished(database)
  t.deepEqual([await count('metrics_fresh'), await count('metrics_packed')], [0, 1])
  const endAgain = await dumping(t, database, 'rsm.metrics_fresh', 'rsm.metrics_packed')
  const age = believed(() => start + 9 * day).age()
  await history.sweep(age)
  t.is(await count('metrics_packed'), 1)
  await endAgain()
  await history.sweep(age)
  t.is(await count('metrics_packed'), 0)
})

test('two servers that pack at once pack each sample once, and a concurrent reader misses none', async (t) => {
  const { database, written } = await open(t)
  const hosts = Array.from({ length: 200 }, (_, n) => n + 1)
  const history = await written((one) => {
    for (const hostId of hosts)
      for (let n = 0; n < 20; n++) one.append(hostId, metrics(iso(start - n * minute)))
  })
  const other = openDatabase(
    t,
    `postgres://rsm@127.0.0.1:${(await postgres).port}/${database.address.database}`,
    'b',
  )
  await setAhead(database, 1)
  const state = { isPacked: false }
  const packing = Promise.all([packFinished(database), packFinished(other)]).finally(() => {
    state.isPacked = true
  })
  let reads = 0
  while (!state.isPacked) t.is((await timesOf(history, (reads++ % 200) + 1)).length, 20)
  await packing
  await packFinished(database)
  for (const hostId of hosts) t.is((await timesOf(history, hostId)).length, 20)
  const [packed] = await database.ask<{ count: number }>('api', 'select count(*) from rsm.metrics_packed')
  t.is(packed?.count, 200)
})

test('samples of a host beyond its share of an hour are not kept', async (t) => {
  const { written } = await open(t)
  const history = await written((one) => {
    for (let n = 0; n < 18_100; n++) one.append(1, metrics(iso(start - n)))
    one.append(2, metrics(iso(start)))
  })
  t.is((await timesOf(history, 1)).length, 18_000)
  t.deepEqual(await timesOf(history, 2), [0])
})

test('while PostgreSQL is down samples are buffered up to the bound, stay readable, and are written afterwards', async (t) => {
  const own = await startPostgres(atExit)
  const database = openDatabase(t, await own.database())
  const warnings: string[] = []
  const log = { ...quiet, warn: (_: unknown, message: string) => void warnings.push(message) } as typeof quiet
  const history = createHistory({ database, clock: standing, log, mostWaiting: 1500 })
  own.stop('immediate')
  for (let n = 0; n < 100; n++) history.append(1, metrics(iso(start - 100 + n)))
  await history.close()
  t.deepEqual(warnings, [
    'metrics history could not be written for too long; samples dropped',
    'cannot write metrics history; trying again',
    'the last metrics could not be written',
  ])
  own.start()
  await history.close()
  const kept = await timesOf(history, 1)
  t.true(kept.length >= 5 && kept.length <= 20)
  t.is(kept.at(-1), -1)
})
