import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { register as registerAgent } from '../../../src/server/services/registration.ts'
import { openJsonStore } from '../../../src/server/storage/files/store/store.ts'
import { removeNeedlessTombstones } from '../../../src/server/storage/tombstones.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { type Answer, startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { host } from '../../helpers/servers/store-records.ts'

const register = (server: TestServer, token: string, agentId: string, hostname = agentId): Promise<Answer> =>
  server.api('POST', '/api/agent/register', { agentId, hostname }, { authorization: `Bearer ${token}` })
const enrollment = (server: TestServer, body: object = {}): Promise<{ id: number; token: string }> =>
  server.data('POST', '/api/enrollment-tokens', body)
const beat = (server: TestServer, agentId: string, token: string) =>
  server.api(
    'POST',
    '/api/agent/heartbeat',
    { agentId, status: 'HEALTHY' },
    { authorization: `Bearer ${token}` },
  )

/** Expired, but not removed, because the clock may be wrong. */
const enrollmentRecord = (id: number, uses: number) => ({
  id,
  name: null,
  tokenHash: `hash-${id}`,
  maxUses: 2,
  uses,
  tags: {},
  clusterId: null,
  hostId: null,
  createdBy: 'admin',
  createdAt: '2026-01-01T00:00:00.000Z',
  expiresAt: '2026-01-01T00:00:00.000Z',
})

/** Enrolls a host with a multi-use token; returns its id and agent token. */
async function joined(server: TestServer, token: string, name: string) {
  const { status, body } = await register(server, token, name)
  if (status !== 200) throw new Error(body.message)
  await beat(server, name, body.data.token)
  return body.data as { hostId: number; token: string }
}

const ends = {
  removed: (server: TestServer, hostId: number) => server.data('DELETE', `/api/hosts/${hostId}`),
  revoked: (server: TestServer, hostId: number) => server.data('DELETE', `/api/hosts/${hostId}/agent`),
}

for (const [state, end] of Object.entries(ends))
  test(`A13 a ${state} agent cannot use enrollment tokens of that time, even after a restart, but later ones`, async (t) => {
    const server = await startTestServer(t)
    const { token } = await enrollment(server, { maxUses: 20 })
    const former = await joined(server, token, 'web1')
    const link = await ScriptedAgent.link(server, { ...former, agentId: 'web1' })
    // A second, unused token of that time.
    const unused = await enrollment(server, { maxUses: 5 })
    await end(server, former.hostId)
    t.is((await link.closed).code, 4401)
    t.is((await beat(server, 'web1', former.token)).status, 401)
    t.is((await register(server, former.token, 'web1')).status, 401)
    for (let round = 0; round < 2; round++) {
      for (const each of [token, unused.token]) {
        const refused = await register(server, each, 'web1')
        t.is(refused.status, 403)
        t.is(refused.headers.get('retry-after'), '300')
        t.regex(
          refused.body.message,
          state === 'removed'
            ? /was removed.*: rsm hosts join$/
            : /was revoked.*: rsm hosts join --replace web1$/,
        )
      }
      await server.restart()
    }
    t.is((await register(server, token, 'web2')).status, 200, 'it still admits others')
    const later = await enrollment(server, { maxUses: 20 })
    const back = await register(server, later.token, 'web1')
    t.is(back.status, 200)
    t.is(back.body.data.hostId === former.hostId, state === 'revoked', 'a removed host gets a new record')
    t.is((await beat(server, 'web1', back.body.data.token)).status, 200)
    const uses = (await server.data('GET', '/api/enrollment-tokens')).content.map((each: any) => each.uses)
    t.deepEqual(uses, [2, 0, 1], 'a refusal does not count as a use')
  })

test('A13 a revoked and then removed host, or one removed again, stays out: the latest event counts', async (t) => {
  const server = await startTestServer(t)
  const first = await enrollment(server, { maxUses: 20 })
  const { hostId } = await joined(server, first.token, 'web1')
  await ends.revoked(server, hostId)
  const second = await enrollment(server, { maxUses: 20 })
  await ends.removed(server, hostId)
  for (const { token } of [first, second]) t.is((await register(server, token, 'web1')).status, 403)
  const third = await enrollment(server, { maxUses: 20 })
  const again = await joined(server, third.token, 'web1')
  await ends.removed(server, again.hostId)
  for (const { token } of [first, second, third]) t.is((await register(server, token, 'web1')).status, 403)
})

test('A13 an unused hosts join --replace token made before a revocation readmits the agent once', async (t) => {
  const server = await startTestServer(t)
  const { token } = await enrollment(server, { maxUses: 20, tags: { role: 'web' } })
  const { id: clusterId } = await server.data('POST', '/api/clusters', { name: 'web' })
  const { hostId } = await joined(server, token, 'web1')
  await server.data('PATCH', `/api/clusters/${clusterId}`, { hostIds: [hostId] })
  await server.data('PATCH', `/api/hosts/${hostId}`, { tags: { rack: 'r1' } })
  const other = await joined(server, token, 'web2')
  const forOther = await enrollment(server, { hostId: other.hostId, maxUses: 5 })
  const replace = await enrollment(server, { hostId, maxUses: 5 })
  await ends.revoked(server, hostId)
  t.is((await register(server, forOther.token, 'web1')).status, 403)
  const back = await register(server, replace.token, 'web1')
  t.is(back.body.data.hostId, hostId)
  const host = await server.data('GET', `/api/hosts/${hostId}`)
  t.deepEqual(
    [host.tags, host.clusterIds],
    [{ role: 'web', rack: 'r1' }, [clusterId]],
    'tags and clusters are kept',
  )
  await beat(server, 'web1', back.body.data.token)
  await ends.revoked(server, hostId)
  t.is((await register(server, replace.token, 'web1')).status, 403)
})

test('A13 the old agent of a host taken over by another is refused, with the remedy that applies to it', async (t) => {
  const server = await startTestServer(t)
  const { token } = await enrollment(server, { maxUses: 20 })
  const { hostId } = await joined(server, token, 'web1')
  const replace = await enrollment(server, { hostId })
  await ends.revoked(server, hostId)
  t.is((await register(server, replace.token, 'reinstalled', 'web1')).status, 200)
  t.is((await register(server, token, 'web1', 'elsewhere')).status, 403)
  await ends.removed(server, hostId)
  t.regex((await register(server, token, 'web1')).body.message, /: rsm hosts join$/)
})

test('A13 the agent of a host taken over by another is refused like a revoked one', async (t) => {
  const server = await startTestServer(t)
  const { token } = await enrollment(server, { maxUses: 20 })
  const { hostId } = await joined(server, token, 'web1')
  const replace = await enrollment(server, { hostId, maxUses: 5 })
  const successor = await register(server, replace.token, 'reinstalled', 'web1')
  t.is(successor.body.data.hostId, hostId)
  for (const each of [token, replace.token]) {
    const refused = await register(server, each, 'web1', 'elsewhere')
    t.is(refused.status, 403)
    t.regex(refused.body.message, /was revoked/)
  }
  t.is((await beat(server, 'reinstalled', successor.body.data.token)).status, 200)
  const later = await enrollment(server)
  t.is((await register(server, later.token, 'web1', 'elsewhere')).status, 200)
})

for (const [state, end] of Object.entries(ends))
  test(`A13 an ADMIN's own registration admits a ${state} agent, and its old tokens no longer matter`, async (t) => {
    const server = await startTestServer(t)
    const { token } = await enrollment(server, { maxUses: 20 })
    const { hostId } = await joined(server, token, 'web1')
    await end(server, hostId)
    t.is((await register(server, token, 'web1')).status, 403)
    const back = await register(server, server.token, 'web1')
    t.is(back.status, 200)
    t.is((await beat(server, 'web1', back.body.data.token)).status, 200)
    t.is((await register(server, token, 'web1')).status, 409, 'it has a live token now')
  })

test('an agent revoked by an older server returns only by hosts join --replace, because its tokens are unknown', async (t) => {
  const { context } = await startInsides(t)
  const at = '2026-01-01T00:00:00.000Z'
  const agent = {
    agentId: 'a1',
    agentVersion: '0.1.0',
    registeredAt: at,
    tokenHash: null,
    tokenUsed: true,
    enrollmentId: null,
  }
  const enrollment = (id: number, hostId: number | null) => ({ ...enrollmentRecord(id, 0), hostId })
  await context.store.transact((tx) => {
    tx.put('hosts', host(1, 'web1', { agent }))
    tx.put('enrollments', enrollment(1, null))
    tx.put('enrollments', enrollment(2, 1))
  })
  const registered = (id: number) =>
    registerAgent(
      context,
      { type: 'enrollment', id },
      { agentId: 'a1', hostname: 'web1' },
      '::1',
      `hash-${id}`,
    )
  await t.throwsAsync(registered(1), { message: /rsm hosts join --replace web1$/ })
  t.is((await registered(2)).hostId, 1)
})

test('A13 a removal and a revocation list the enrollment tokens that are still open', async (t) => {
  const server = await startTestServer(t)
  const open = await enrollment(server, { maxUses: 20, name: 'web servers' })
  const used = await enrollment(server)
  await enrollment(server, { expiresInHours: 0.000_001 })
  const gone = await enrollment(server)
  await server.data('DELETE', `/api/enrollment-tokens/${gone.id}`)
  const one = await joined(server, open.token, 'web1')
  await joined(server, used.token, 'web2')
  for (const state of ['revoked', 'removed'] as const) {
    const { id, openEnrollments } = await ends[state](server, one.hostId)
    t.is(id, one.hostId)
    t.is(openEnrollments.length, 1)
    const { expiresAt, ...named } = openEnrollments[0]
    t.deepEqual(named, { id: open.id, name: 'web servers', maxUses: 20, uses: 1 })
    t.true(Date.parse(expiresAt) > Date.now())
  }
  await server.data('DELETE', `/api/enrollment-tokens/${open.id}`)
  const { id } = await server.data('POST', '/api/hosts', { hostname: 'never-joined', ip: '10.0.0.1' })
  t.deepEqual(await ends.removed(server, id), { id, openEnrollments: [] })
})

test('A13 a tombstone is removed once no enrollment token up to its own is usable', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-store-'))
  const store = await openJsonStore({ directory })
  t.teardown(async () => {
    await store.close()
    await rm(directory, { recursive: true })
  })
  const at = '2026-01-01T00:00:00.000Z'
  await store.transact((tx) => {
    tx.put('enrollments', enrollmentRecord(1, 2))
    tx.put('enrollments', enrollmentRecord(2, 1))
    for (const [id, enrollmentId] of [
      ['before', 1],
      ['at', 2],
      ['after', 3],
    ] as const)
      tx.put('tombstones', { id, state: 'removed', hostId: 1, hostname: 'web1', enrollmentId, createdAt: at })
  })
  const kept = async () => (await store.query('tombstones')).items.map(({ id }) => id)
  await removeNeedlessTombstones(store)
  t.deepEqual(await kept(), ['after', 'at'])
  await store.transact((tx) => tx.remove('enrollments', 2))
  await removeNeedlessTombstones(store)
  t.deepEqual(await kept(), [])
})
