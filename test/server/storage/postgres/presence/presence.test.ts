import { EventEmitter, once } from 'node:events'
import type { ExecutionContext } from 'ava'
import { lease } from '../../../../../src/server/storage/ports/cluster.ts'
import {
  atExit,
  sharedPostgres,
  startPostgres,
  postgresTest as test,
} from '../../../../helpers/servers/postgres.ts'
import { type PresenceServer, presenceServer, shows } from '../../../../helpers/servers/presence-servers.ts'
import { sharedStore } from '../../../../helpers/servers/shared-store.ts'
import { until } from '../../../../helpers/until.ts'

const greeting = { runAs: 'deploy', runsAsRoot: false, sandbox: 'none', containment: 'cgroup' } as const
const day = 86_400_000

const opened = async (t: ExecutionContext, postgres = sharedPostgres()) =>
  sharedStore(await postgres, (end) => t.teardown(end))

/** The agent of host 1 registers and links. */
function linked(server: PresenceServer) {
  server.presence.registered(1)
  server.presence.greeted(1, greeting)
  return server.link(1)
}

test('a starting server learns about existing links from another server', async (t) => {
  const store = await opened(t)
  const [a, witness] = [await presenceServer(t, store, 'a'), await presenceServer(t, store, 'witness')]
  await linked(a)
  await shows(witness, 1, { connected: true })
  const b = await presenceServer(t, store, 'b')
  t.like(await b.view(1), { connected: true, reachable: true, linkLostAt: null })
})

test('a starting server ignores links of dead servers and released links', async (t) => {
  const store = await opened(t)
  const [a, gone] = [await presenceServer(t, store, 'a'), await presenceServer(t, store, 'gone')]
  await linked(gone)
  a.presence.registered(2)
  const released = await a.link(2)
  a.presence.connected(2, false, undefined, released)
  await a.links.release(released)
  await gone.stop()
  const b = await presenceServer(t, store, 'b')
  t.like(await b.view(1), { connected: false, reachable: false })
  t.like(await b.view(2), { connected: false })
})

test('a server with a new link keeps the status that others know for its host', async (t) => {
  const store = await opened(t)
  const [a, b] = [await presenceServer(t, store, 'a'), await presenceServer(t, store, 'b')]
  const claimed = await b.links.claim(1, { server: b.member, agentId: 'agent' }, () => undefined)
  a.presence.registered(1)
  b.presence.connected(1, true, undefined, claimed?.claim)
  await shows(a, 1, { connected: true })
  await shows(b, 1, { agentStatus: 'HEALTHY' })
  t.like(await a.view(1), { status: 'ONLINE', agentStatus: 'HEALTHY' })
})

test('F28 a server that receives no hints notices links that open, move and close', async (t) => {
  const store = await opened(t)
  const a = await presenceServer(t, store, 'a')
  const b = await presenceServer(t, store, 'b', { isLost: (kind) => kind === 'presence' })
  const claim = await linked(a)
  await shows(b, 1, { connected: true, reachable: true })
  a.presence.connected(1, false, undefined, claim)
  await shows(b, 1, { connected: false, reachable: false })
  await b.link(1)
  await shows(a, 1, { connected: true })
  const moved = await a.link(1)
  b.presence.duplicate(1, true)
  await shows(a, 1, { status: 'WARNING' })
  t.like(await a.view(1), { connected: true })
  a.presence.connected(1, false, undefined, moved)
  await shows(b, 1, { connected: false, reachable: false })
})

test('a change of a host is kept although a server reads a later heartbeat at the same time', async (t) => {
  const store = await opened(t)
  const a = await presenceServer(t, store, 'a')
  const list = async () => {
    const rows = await store.ask<{ turn: number }>('api', 'select max(turn) as turn from rsm.presence_heard')
    return rows[0]?.turn ?? 0
  }
  let between: (() => Promise<void>) | null = null
  // A read consists of two statements.
  let statements = 0
  const b = await presenceServer(t, store, 'b', {
    async asking(name) {
      if (!['presence.rows-after', 'presence.heard-after'].includes(name)) return
      if (++statements % 2 === 1 || between === null) return
      const work = between
      between = null
      await work()
    },
  })
  a.presence.registered(1)
  await shows(b, 1, { status: 'ONLINE' })
  between = async () => {
    const before = await list()
    a.presence.heartbeat(1, { status: 'UNHEALTHY' })
    await until('the change is written', async () => {
      const [row] = await store.ask<{ beat: string }>('api', 'select beat from rsm.presence')
      return row?.beat.includes('UNHEALTHY') === true
    })
    a.presence.heartbeat(1, { status: 'UNHEALTHY' })
    await until('the heartbeat after it is written', async () => (await list()) > before)
  }
  await until('a read is interrupted', () => between === null)
  await shows(b, 1, { status: 'WARNING' })
  t.like(await b.view(1), { agentStatus: 'UNHEALTHY' })
})

test('a server that learns late that a host was removed leaves no row of it', async (t) => {
  const store = await opened(t)
  const a = await presenceServer(t, store, 'a')
  let isHeld = false
  let isWaiting = false
  const released = new EventEmitter()
  const b = await presenceServer(t, store, 'b', {
    async asking(name) {
      if (!isHeld || name !== 'presence.write') return
      isWaiting = true
      await once(released, 'released')
    },
  })
  const rows = async () => (await store.ask('api', 'select from rsm.presence')).length
  a.presence.registered(1)
  await shows(b, 1, { status: 'ONLINE' })
  isHeld = true
  b.presence.duplicate(1, true)
  await until('b is about to write', () => isWaiting)
  a.presence.forget(1)
  await until('a has deleted the row', async () => (await rows()) === 0)
  isHeld = false
  released.emit('released')
  await until('b has written', async () => (await rows()) === 1)
  a.hints.publish('host', { id: 1, change: 'removed' })
  await until('b has deleted the row', async () => (await rows()) === 0)
  for (const { view } of [a, b]) t.like(await view(1), { status: 'OFFLINE', statusReason: 'never heard' })
})

test('a status written by a server that died is known to servers that start later', async (t) => {
  const store = await opened(t)
  const [a, b] = [await presenceServer(t, store, 'a'), await presenceServer(t, store, 'b')]
  await linked(a)
  await shows(b, 1, { status: 'ONLINE' })
  a.lapse()
  await store.forward(lease)
  t.true(await b.ownership.renew(b.member))
  await until('its lease has expired', () => b.ownership.neighbours.others().size === 0)
  await b.stop()
  const c = await presenceServer(t, store, 'c')
  t.like(await c.view(1), { status: 'ONLINE', greeting, connected: false })
})

test('after all servers were down, each one that starts has the last known status', async (t) => {
  const store = await opened(t)
  const former = await presenceServer(t, store, 'a')
  for (const hostId of [1, 2]) former.presence.registered(hostId)
  former.presence.revoked(2)
  await former.stop()
  await store.forward(day)
  const servers = [await presenceServer(t, store, 'a'), await presenceServer(t, store, 'b')]
  for (const { presence, view } of servers) {
    presence.duplicate(1, false)
    t.like(await view(1), { status: 'ONLINE', statusReason: null, reachable: false })
    t.like(await view(2), { status: 'OFFLINE', statusReason: 'its agent token was revoked' })
    t.like(await view(3), { status: 'OFFLINE', statusReason: 'never heard' })
  }
})

test('a server that starts after an outage keeps the status of hosts that no other server calls OFFLINE', async (t) => {
  const store = await opened(t)
  const a = await presenceServer(t, store, 'a')
  const former = await presenceServer(t, store, 'former')
  former.presence.registered(1)
  former.presence.heartbeat(1, { status: 'UNHEALTHY' })
  await former.stop()
  await store.forward(100_000)
  t.true(await a.ownership.renew(a.member))
  const b = await presenceServer(t, store, 'b')
  b.presence.duplicate(1, false)
  t.like(await b.view(1), { status: 'WARNING', statusReason: 'the agent reports UNHEALTHY' })
})

test('F23 the last known status survives a crash of PostgreSQL and all servers', async (t) => {
  const postgres = await startPostgres(atExit)
  const store = await opened(t, Promise.resolve(postgres))
  const former = await presenceServer(t, store, 'a')
  former.presence.registered(1)
  former.presence.heartbeat(1, { status: 'UNHEALTHY' })
  await former.stop()
  postgres.stop('immediate')
  postgres.start()
  const { view } = await presenceServer(t, store, 'a')
  t.like(await view(1), { status: 'WARNING', statusReason: 'the agent reports UNHEALTHY' })
  t.like(await view(2), { status: 'OFFLINE', statusReason: 'never heard' })
})
