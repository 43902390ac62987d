import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import type { LinkClaim, Member } from '../../../src/server/storage/ports/cluster.ts'
import { metrics } from '../../helpers/metrics/metrics.ts'
import { atExit, type Postgres, startPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { presenceServer as server, shows } from '../../helpers/servers/presence-servers.ts'
import { sharedStore } from '../../helpers/servers/shared-store.ts'
import { until } from '../../helpers/until.ts'

const greeting = { runAs: 'deploy', runsAsRoot: false, sandbox: 'none', containment: 'cgroup' } as const

let shared: Promise<Postgres> | undefined

/** `isDeaf`: b receives no NOTIFY. */
async function started(t: ExecutionContext, { heartbeatInterval = 30, isDeaf = false } = {}) {
  shared ??= startPostgres(atExit)
  const store = await sharedStore(await shared, (end) => t.teardown(end))
  const a = await server(t, store, 'a', { heartbeatInterval })
  const b = await server(t, store, 'b', { heartbeatInterval, isLost: () => isDeaf })
  return { store, a, b }
}

let epochs = 0
const claimBy = (agentId: string, hostId: number, by: Member): LinkClaim => ({
  hostId,
  agentId,
  server: by,
  epoch: ++epochs,
  since: '2026-03-02T09:30:00.000Z',
})

test('a registration at one server does not undo the HELLO that another server received', async (t) => {
  const { a, b } = await started(t)
  const pairs = [
    [a, b],
    [b, a],
  ] as const
  for (const [at, [registering, linking]] of pairs.entries()) {
    registering.presence.registered(at + 1)
    linking.presence.greeted(at + 1, greeting)
    linking.presence.connected(at + 1, true, undefined, claimBy(`agent${at}`, at + 1, linking.member))
  }
  for (const one of [a, b])
    for (const hostId of [1, 2]) await shows(one, hostId, { status: 'ONLINE', connected: true })
  for (const [at, [, linking]] of pairs.entries()) linking.presence.connected(at + 1, false)
  for (const one of [a, b])
    for (const hostId of [1, 2]) {
      await shows(one, hostId, { connected: false, noLink: true })
      t.deepEqual((await one.view(hostId)).greeting, greeting)
    }
})

test("a host's state that one server receives is shown by every server", async (t) => {
  const { a, b } = await started(t)
  const told: number[] = []
  b.hints.subscribe('host', 1, ({ id }) => told.push(id))
  a.presence.registered(1)
  a.presence.greeted(1, greeting)
  a.presence.connected(1, true, undefined, claimBy('agent', 1, a.member))
  a.presence.heartbeat(1, {
    status: 'DEGRADED',
    uptime: 77.5,
    says: { statusReason: 'no room' },
    timestamp: new Date(Date.now() + 60_000).toISOString(),
  })
  const report = metrics(new Date().toISOString(), { disks: { '/': 40, '/ä': 97.5 } })
  a.presence.metrics(1, report)
  await shows(b, 1, { status: 'WARNING', connected: true })
  t.true(told.length > 0)
  await until('the report arrives', async () => (await b.view(1)).metrics !== null)
  const [atA, atB] = [await a.view(1), await b.view(1)]
  const timed = { lastHeartbeatAt: null, uptime: null, clockOffsetSeconds: null }
  t.deepEqual({ ...atB, ...timed }, { ...atA, ...timed })
  t.is(atB.statusReason, 'the agent reports DEGRADED: no room, disk /ä 97 %')
  t.true(Math.abs(Date.parse(atB.lastHeartbeatAt ?? '') - Date.parse(atA.lastHeartbeatAt ?? '')) < 1500)
  t.true(Math.abs((atB.clockOffsetSeconds ?? 0) - 60) < 3)
  t.deepEqual(await b.presence.standings([1, 2]), [
    { status: 'WARNING', reachable: true, noLink: false },
    { status: 'OFFLINE', reachable: false, noLink: false },
  ])
  a.presence.heartbeat(1, { status: 'HEALTHY', uptime: 80 })
  a.presence.metrics(1, metrics(new Date().toISOString(), { disks: { '/': 40 } }))
  await shows(b, 1, { status: 'ONLINE', statusReason: null })
  a.presence.duplicate(1, true)
  await shows(b, 1, { status: 'WARNING', statusReason: 'two agents use the identity of this host' })
  a.presence.duplicate(1, false)
  a.presence.connected(1, false, 'the agent was stopped at 2026-03-02T09:30:00.000Z')
  await shows(b, 1, { connected: false, reachable: false })
  t.regex((await b.view(1)).statusReason ?? '', /^its agent was stopped \d s ago$/)
  a.presence.revoked(1)
  await shows(b, 1, { status: 'OFFLINE', statusReason: 'its agent token was revoked' })
  a.presence.forget(1)
  a.hints.publish('host', { id: 1, change: 'removed' })
  await shows(b, 1, { status: 'OFFLINE', statusReason: 'never heard', greeting: null })
})

test('a host counts as heard while one server hears it, and as silent at all servers once none does', async (t) => {
  const { a, b } = await started(t, { heartbeatInterval: 2 })
  for (const { presence } of [a, b]) presence.registered(1)
  a.presence.registered(2)
  for (let beats = 0; beats < 5; beats++) {
    for (const hostId of [1, 2]) a.presence.heartbeat(hostId, { status: 'HEALTHY', uptime: 10 + 2 * beats })
    await delay(2000)
    for (const hostId of [1, 2]) t.like(await b.view(hostId), { status: 'ONLINE', reachable: true })
  }
  t.true(((await b.view(2)).uptime ?? 0) >= 16, 'the uptime follows the heartbeats')
  for (const sharing of [a, b]) await shows(sharing, 2, { status: 'OFFLINE' })
})

test('a link at a server that dies disappears at the other servers', async (t) => {
  const { a, b } = await started(t)
  await delay(5_500)
  a.presence.registered(1)
  a.presence.greeted(1, greeting)
  a.presence.connected(1, true, undefined, claimBy('agent', 1, a.member))
  await shows(b, 1, { connected: true, linkLostAt: null })
  await a.kill()
  const began = performance.now()
  await shows(b, 1, { connected: false, reachable: false, status: 'ONLINE' })
  t.true(performance.now() - began < 2500, `${performance.now() - began} ms`)
  t.truthy((await b.view(1)).linkLostAt)
})

test('P12 the newer claim of two links of a host counts, in whichever order servers learn of them', async (t) => {
  const { a, b } = await started(t)
  a.presence.registered(1)
  a.presence.greeted(1, greeting)
  const former = claimBy('agent', 1, a.member)
  const newer = claimBy('agent', 1, b.member)
  a.presence.connected(1, true, undefined, former)
  await shows(b, 1, { connected: true })
  b.presence.connected(1, false, undefined, newer)
  b.presence.connected(1, true, undefined, newer)
  a.presence.connected(1, false, undefined, former)
  await shows(a, 1, { connected: true })
  await delay(500)
  for (const sharing of [a, b]) t.like(await sharing.view(1), { connected: true, reachable: true })
  b.presence.connected(1, false, undefined, newer)
  await shows(a, 1, { connected: false })
})

test('F28 a server that receives no hints polls what others heard, and does not call a heard host OFFLINE', async (t) => {
  const { a, b } = await started(t, { heartbeatInterval: 5, isDeaf: true })
  for (const hostId of [1, 2]) a.presence.registered(hostId)
  a.presence.greeted(1, greeting)
  const seen = new Set<string>()
  b.hints.subscribe('host', 1, () => void b.view(1).then(({ status }) => seen.add(status)))
  const beating = setInterval(() => a.presence.heartbeat(1, { status: 'HEALTHY' }), 2000)
  t.teardown(() => clearInterval(beating))
  await shows(b, 1, { status: 'ONLINE' })
  await delay(17_000)
  t.like(await b.view(1), { status: 'ONLINE', greeting: { ...greeting } })
  t.false(seen.has('OFFLINE'))
  a.presence.heartbeat(1, { status: 'UNHEALTHY' })
  clearInterval(beating)
  await shows(b, 1, { status: 'WARNING' })
  await shows(b, 2, { status: 'OFFLINE' })
})

test('while the store is unavailable no host falls silent that others may hear, and afterwards its state is unchanged', async (t) => {
  const postgres = await startPostgres(atExit)
  const store = await sharedStore(postgres, (end) => t.teardown(end))
  const [a, b] = [
    await server(t, store, 'a', { heartbeatInterval: 3 }),
    await server(t, store, 'b', { heartbeatInterval: 3 }),
  ]
  a.presence.registered(1)
  a.presence.greeted(1, greeting)
  a.presence.connected(1, true, undefined, claimBy('agent', 1, a.member))
  await shows(b, 1, { status: 'ONLINE', connected: true })
  const seen = new Set<string>()
  b.hints.subscribe('host', 1, () => void b.view(1).then(({ status }) => seen.add(status)))
  const beating = setInterval(() => a.presence.heartbeat(1, { status: 'HEALTHY' }), 1000)
  t.teardown(() => clearInterval(beating))
  postgres.stop('immediate')
  await delay(13_000)
  t.like(await b.view(1), { status: 'ONLINE', connected: true })
  postgres.start()
  await delay(6_000)
  t.false(seen.has('OFFLINE'))
  t.like(await b.view(1), { status: 'ONLINE', connected: true })
  await until(
    'the tables are written again',
    async () => (await store.ask('api', 'select from rsm.presence')).length === 1,
  )
})

test('F23 a heartbeat received during a store outage is written afterwards', async (t) => {
  const postgres = await startPostgres(atExit)
  const store = await sharedStore(postgres, (end) => t.teardown(end))
  const a = await server(t, store, 'a')
  const written = async () => {
    const [row] = await store.ask<{ at: number }>('api', 'select heard_at as at from rsm.presence')
    return row?.at ?? 0
  }
  a.presence.registered(1)
  await until('the registration is written', async () => (await written()) > 0)
  postgres.stop('fast')
  await delay(1000)
  a.presence.heartbeat(1, { status: 'HEALTHY' })
  const at = Date.parse((await a.view(1)).lastHeartbeatAt ?? '')
  await delay(6000)
  postgres.start()
  await until('the heartbeat is written', async () => (await written().catch(() => 0)) === at)
  t.is(await written(), at)
})

test('a server that joins others reads their view of hosts, and counts silence from before its start', async (t) => {
  const { store, a } = await started(t, { heartbeatInterval: 4 })
  for (const hostId of [1, 2]) a.presence.registered(hostId)
  a.presence.greeted(1, greeting)
  await a.link(1)
  a.presence.metrics(1, metrics(new Date().toISOString(), { cpu: 12 }))
  const beating = setInterval(() => a.presence.heartbeat(1, { status: 'HEALTHY' }), 1000)
  t.teardown(() => clearInterval(beating))
  await delay(10_000)
  const c = await server(t, store, 'c', { heartbeatInterval: 4 })
  t.like(await c.view(1), { status: 'ONLINE', connected: true, greeting: { ...greeting } })
  t.is((await c.view(1)).metrics?.cpu.usagePercent, 12)
  const began = performance.now()
  await shows(c, 2, { status: 'OFFLINE' })
  t.true(performance.now() - began < 9000, 'the silence began before this server started')
  t.like(await c.view(1), { status: 'ONLINE' })
})
