import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import { lease, type Member } from '../../../src/server/storage/ports/cluster.ts'
import { settleTime } from '../../../src/server/storage/postgres/ownership/lives.ts'
import {
  openOwnership,
  type StoreOwnership,
} from '../../../src/server/storage/postgres/ownership/ownership.ts'
import { type CutLink, startCutLink } from '../../helpers/faults/cut-link.ts'
import {
  atExit,
  sharedPostgres,
  startPostgres,
  postgresTest as test,
} from '../../helpers/servers/postgres.ts'
import { type SharedStore, type SharingServer, sharedStore } from '../../helpers/servers/shared-store.ts'
import { until } from '../../helpers/until.ts'

/** Milliseconds after which a missing lock counts as evidence. */
const settled = 5_500

/** Locks of this database only: PostgreSQL also has those of other tests. */
const locks = `from pg_locks where locktype = 'advisory'
  and database = (select oid from pg_database where datname = current_database())`

interface Sharing extends SharingServer {
  ownership: StoreOwnership
  network: CutLink
  join(): Promise<Member>
  /** Closes its sockets and refuses new ones, as if its process had been killed. */
  kill(): Promise<void>
}

async function started(t: ExecutionContext, postgres = sharedPostgres()) {
  const store: SharedStore = await sharedStore(await postgres, (end) => t.teardown(end))
  async function server(name: string): Promise<Sharing> {
    const network = await startCutLink(t, store.url.replace('postgres:', 'http:'))
    const parts = await store.server(name, network.url)
    const ownership = await openOwnership({ ...parts, hints: createLocalHints(), version: '0.1.0' })
    t.teardown(() => ownership.close())
    return {
      ...parts,
      ownership,
      network,
      join: () => ownership.join(name),
      kill: () => network.close(),
    }
  }
  /** Renews the lease periodically, as a server does. */
  const renewing = (sharing: Sharing, member: Member) => {
    const timer = setInterval(() => void sharing.ownership.renew(member).catch(() => undefined), 1000)
    t.teardown(() => clearInterval(timer))
  }
  return { store, server, renewing }
}

test("F30 the name of a living server is refused, with its address and advice; a killed server's name is free at once", async (t) => {
  const { server } = await started(t)
  const [first, second] = [await server('a'), await server('a')]
  await delay(settled)
  const former = await first.join()
  await first.ownership.listensAt('https://one:8080', null)
  const refused = await t.throwsAsync(second.join(), {
    code: 'conflict',
    message: 'A server named a is running on this store at https://one:8080',
  })
  t.like(refused, { hint: 'give this one another name with --server-name, or stop that one' })
  t.true(await first.ownership.renew(former))
  await first.kill()
  const began = performance.now()
  const present = await second.join()
  t.true(performance.now() - began < 1000)
  t.true(present.epoch > former.epoch)
})

test('a name whose lock is missing is not taken before PostgreSQL has run for the settle time', async (t) => {
  const postgres = await startPostgres(atExit)
  const beganAt = performance.now()
  const { server } = await started(t, Promise.resolve(postgres))
  const [first, second] = [await server('a'), await server('a')]
  const former = await first.join()
  await first.kill()
  const killedAt = performance.now()
  t.true(killedAt - beganAt < 4000, 'the settle time is not over')
  t.true((await second.join()).epoch > former.epoch)
  // PostgreSQL started before the clock of this test.
  t.true(performance.now() - beganAt > settleTime - 1500, `${performance.now() - beganAt} ms`)
  t.true(performance.now() - killedAt < lease, 'the join does not wait for the lease')
})

test('F30 one of several servers that join under one name at once succeeds', async (t) => {
  const { server } = await started(t)
  const servers = await Promise.all([server('a'), server('a'), server('a')])
  const joined = await Promise.allSettled(servers.map((server) => server.join()))
  t.deepEqual(joined.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected', 'rejected'])
})

test('F22 a killed server is noticed within two seconds, and its tasks are shared out', async (t) => {
  const { server } = await started(t)
  const [a, b, c] = [await server('a'), await server('b'), await server('c')]
  const [killed, one, other] = [await a.join(), await b.join(), await c.join()]
  const tasks = Array.from({ length: 100 }, (_, at) => `task-${at}`)
  t.is((await a.ownership.claim(killed, tasks)).length, 100)
  await delay(settled)
  t.deepEqual(await b.ownership.claim(one, tasks), [])
  await a.kill()
  const began = performance.now()
  const taken = { one: 0, other: 0 }
  await until('all tasks are taken', async () => {
    const [byOne, byOther] = await Promise.all([
      b.ownership.claim(one, tasks),
      c.ownership.claim(other, tasks),
    ])
    Object.assign(taken, { one: byOne.length, other: byOther.length })
    return byOne.length + byOther.length === 100
  })
  t.true(performance.now() - began < 2000, `${performance.now() - began} ms`)
  const gone = (await b.ownership.servers()).filter(({ isLiving }) => !isLiving)
  t.deepEqual(
    gone.map(({ name }) => name),
    ['a'],
  )
  await until('b sees that a is gone', () => !b.ownership.neighbours.others().has(killed.epoch))
})

test('a server whose connection broke is back before another server takes its tasks', async (t) => {
  const { server, renewing, store } = await started(t)
  const [a, b] = [await server('a'), await server('b')]
  const [broken, other] = [await a.join(), await b.join()]
  await a.ownership.claim(broken, ['t1'])
  renewing(a, broken)
  await delay(settled)
  for (let n = 0; n < 3; n++) {
    await store.ask('api', `select pg_terminate_backend(pid) ${locks}`)
    await delay(700)
    t.deepEqual(await b.ownership.claim(other, ['t1']), [])
    t.true(b.ownership.neighbours.others().has(broken.epoch))
  }
  t.true(await a.ownership.holds(broken, 't1'))
})

test('F23 a server that can no longer connect reports it before others take its tasks, while its lease still runs', async (t) => {
  const { server } = await started(t)
  const [a, b] = [await server('a'), await server('b')]
  const [broken, other] = [await a.join(), await b.join()]
  await a.ownership.claim(broken, ['t1'])
  await delay(settled)
  t.true(await a.ownership.renew(broken))
  t.is(a.ownership.fault, null)
  await a.network.close()
  await until('the other server takes over', async () => (await b.ownership.claim(other, ['t1'])).length > 0)
  t.true(a.ownership.holdsLease(broken))
  t.regex(a.ownership.fault ?? '', /holds the lock of this server/)
})

test('F22 a lost machine loses its tasks with its lease, and counts itself as fenced by its own clock', async (t) => {
  const { server, store } = await started(t)
  const [a, b] = [await server('a'), await server('b')]
  const [lost, other] = [await a.join(), await b.join()]
  await a.ownership.claim(lost, ['t1'])
  await delay(settled)
  for (const [{ ownership }, member] of [
    [a, lost],
    [b, other],
  ] as const)
    t.true(await ownership.renew(member))
  a.network.freeze()
  await store.forward(lease - 3000)
  t.true(a.ownership.holdsLease(lost))
  t.deepEqual(await b.ownership.claim(other, ['t1']), [], 'its lock still exists')
  await store.forward(4000)
  t.false(a.ownership.holdsLease(lost))
  t.true(await b.ownership.renew(other))
  t.deepEqual(await b.ownership.claim(other, ['t1']), ['t1'])
  a.network.thaw()
  await until('the lease is renewed', () => a.ownership.renew(lost).catch(() => false))
  t.false(await a.ownership.holds(lost, 't1'))
})

test('F23 after a restart of PostgreSQL a missing lock is not evidence, and all servers continue', async (t) => {
  const postgres = await startPostgres(atExit)
  const { server, renewing, store } = await started(t, Promise.resolve(postgres))
  const [a, b] = [await server('a'), await server('b')]
  const [slow, other] = [await a.join(), await b.join()]
  await a.ownership.claim(slow, ['t1', 'terminal', 'schedules', 'webhook/1'])
  await store.ask('api', `insert into rsm.tasks(id, rec, status) values ('t1', '{}', 'RUNNING')`)
  for (const [sharing, member] of [
    [a, slow],
    [b, other],
  ] as const)
    renewing(sharing, member)
  await delay(settled)
  a.network.freeze()
  postgres.stop('immediate')
  postgres.start()
  a.network.cut()
  const began = performance.now()
  while (performance.now() - began < 3000) {
    t.deepEqual(await b.ownership.claim(other, ['t1']).catch(() => []), [])
    await delay(200)
  }
  a.network.thaw()
  await until('the server is back', () => a.ownership.renew(slow).catch(() => false))
  await delay(settled)
  t.deepEqual(await b.ownership.claim(other, ['t1']), [])
  t.true(await a.ownership.holds(slow, 't1'))
  t.deepEqual(
    (await b.ownership.servers()).map(({ name, isLiving, tasks }) => ({ name, isLiving, tasks })),
    [
      { name: 'a', isLiving: true, tasks: 1 },
      { name: 'b', isLiving: true, tasks: 0 },
    ],
    'only tasks are counted of what the server owns',
  )
  t.is((await store.ask('api', `select ${locks}`)).length, 2)
})
