import type { ExecutionContext } from 'ava'
import { createLog } from '../../../../../src/disk/log.ts'
import { createLocalHints } from '../../../../../src/server/storage/local-hints.ts'
import type { Database } from '../../../../../src/server/storage/postgres/connection/database.ts'
import type { Session } from '../../../../../src/server/storage/postgres/connection/session.ts'
import {
  lockLife,
  lockLifeAgain,
  settleTime,
} from '../../../../../src/server/storage/postgres/ownership/lives.ts'
import { createWatch } from '../../../../../src/server/storage/postgres/ownership/watch.ts'
import { sharedPostgres, postgresTest as test } from '../../../../helpers/servers/postgres.ts'
import { sharedStore } from '../../../../helpers/servers/shared-store.ts'
import { until } from '../../../../helpers/until.ts'

const epoch = 7

/** A server with a lease of a minute and a lock, and a watch that polls only when the test asks. */
async function watched(t: ExecutionContext, { age = settleTime } = {}) {
  const store = await sharedStore(await sharedPostgres(), (end) => t.teardown(end))
  const { database } = await store.server('watching')
  const life = await connected(t, database)
  t.true(await lockLife(life.ask, { epoch }))
  await store.ask(
    'api',
    `insert into rsm.servers (name, epoch, lease_until, joined_at, version)
      values ('a', ${epoch}, rsm.now() + interval '1 minute', rsm.now(), '0.1.0')`,
  )
  const own = await connected(t, database)
  const standing = { age }
  let beforeEnd = async () => undefined as unknown
  const session: Session = {
    async ask(statement, values) {
      if (typeof statement !== 'string' && statement.name === 'servers.end-leases') await beforeEnd()
      return own.ask(statement, values)
    },
    age: () => standing.age,
    drop: () => undefined,
    close: async () => undefined,
  }
  const watch = createWatch(session, createLocalHints(), createLog('ERROR'))
  // Stops the timer, so that only the test polls.
  await watch.close()
  const isLeased = async () =>
    (await store.ask('api', 'select from rsm.servers where lease_until > rsm.now()')).length === 1
  await watch.poll()
  return {
    watch,
    life,
    standing,
    isLeased,
    forward: (time: number) => store.forward(time),
    whenEnding: (work: () => Promise<unknown>) => {
      beforeEnd = work
    },
  }
}

/** A PostgreSQL session controlled by a test. */
async function connected(t: ExecutionContext, database: Database) {
  const client = await database.connect(true)
  let hasEnded = false
  client.on('error', () => undefined)
  client.once('end', () => {
    hasEnded = true
  })
  const end = async () => {
    if (!hasEnded) await client.end()
  }
  t.teardown(end)
  const ask = async (statement: any, values: any = []) => {
    const given = typeof statement === 'string' ? { text: statement } : statement
    return (await client.query({ ...given, values })).rows
  }
  return { ask, end, ended: () => hasEnded, unlock: () => ask('select pg_advisory_unlock_all()') }
}

test('a server whose lock is missing in two polls is dead: its lease ends, and it is not listed as living', async (t) => {
  const { watch, life, isLeased } = await watched(t)
  let changes = 0
  watch.changed(() => changes++)
  t.deepEqual([...watch.living()], [epoch])
  await life.end()
  await until('PostgreSQL has released the lock', async () => {
    await watch.poll()
    return !(await isLeased())
  })
  t.deepEqual([...watch.living()], [])
  t.is(changes, 1)
})

test('one poll without the lock proves nothing, nor do two that are not consecutive', async (t) => {
  const { watch, life, isLeased } = await watched(t)
  for (let times = 0; times < 3; times++) {
    await life.unlock()
    await watch.poll()
    t.true(await isLeased())
    t.true(await lockLife(life.ask, { epoch }))
    await watch.poll()
  }
  t.true(await isLeased())
  t.deepEqual([...watch.living()], [epoch])
})

test('a server whose own session is younger than the settling time ends no lease', async (t) => {
  const { watch, life, standing, isLeased } = await watched(t, { age: settleTime - 1 })
  await life.unlock()
  for (let looks = 0; looks < 3; looks++) await watch.poll()
  t.true(await isLeased())
  t.deepEqual([...watch.living()], [epoch])
  standing.age = settleTime
  await watch.poll()
  t.false(await isLeased())
})

test('a lock that is back just before its lease would be ended keeps the lease', async (t) => {
  const { watch, life, isLeased, whenEnding } = await watched(t)
  whenEnding(() => lockLife(life.ask, { epoch }))
  await life.unlock()
  await watch.poll()
  await watch.poll()
  t.true(await isLeased())
  await watch.poll()
  t.deepEqual([...watch.living()], [epoch])
})

test('a server whose lease expired does not count as living, whatever its lock', async (t) => {
  const { watch, forward } = await watched(t, { age: 0 })
  await forward(61_000)
  await watch.poll()
  t.deepEqual([...watch.living()], [])
})

test('a failed poll changes nothing, and the later of two polls decides', async (t) => {
  const rows = (...names: string[]) =>
    names.map((name, at) => ({ name, epoch: at + 1, is_leased: true, is_locked: true }))
  const answers: (() => Promise<object[]>)[] = []
  const session: Session = {
    ask: async () => ((await answers.shift()?.()) ?? []) as never,
    age: () => settleTime,
    drop: () => undefined,
    close: async () => undefined,
  }
  const watch = createWatch(session, createLocalHints(), createLog('ERROR'))
  await watch.close()
  answers.push(async () => rows('a', 'b'))
  await watch.poll()
  let changes = 0
  watch.changed(() => changes++)
  answers.push(() => Promise.reject(new Error('away')))
  await t.throwsAsync(watch.poll(), { message: 'away' })
  t.deepEqual([[...watch.living()], changes], [[1, 2], 0])
  const slow: { answer?: (found: object[]) => void } = {}
  const answered = new Promise<object[]>((resolve) => {
    slow.answer = resolve
  })
  answers.push(
    () => answered,
    async () => rows('a'),
  )
  const both = [watch.poll(), watch.poll()]
  slow.answer?.(rows('a', 'b', 'c'))
  await Promise.all(both)
  t.deepEqual([...watch.living()], [1])
})

test('a server regains its lock from an old session of its own that PostgreSQL still considers alive', async (t) => {
  const store = await sharedStore(await sharedPostgres(), (end) => t.teardown(end))
  const { database } = await store.server('a')
  const [former, next] = [await connected(t, database), await connected(t, database)]
  t.true(await lockLife(former.ask, { epoch }))
  t.false(await lockLife(next.ask, { epoch }))
  await lockLifeAgain(next.ask, { epoch })
  await until('the old session has ended', () => former.ended())
  t.false(await lockLife((await connected(t, database)).ask, { epoch }))
})
