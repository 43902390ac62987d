import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { createCredentials, newToken } from '../../../src/server/access/credentials.ts'
import { openJsonStore } from '../../../src/server/storage/files/store/store.ts'
import { host, token, user } from '../../helpers/servers/store-records.ts'

const minute = 60_000

async function setUp(t: ExecutionContext) {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-credentials-'))
  const store = await openJsonStore({ directory: join(directory, 'store') })
  t.teardown(async () => {
    await store.close()
    await rm(directory, { recursive: true, force: true })
  })
  let now = Date.parse('2026-01-01T00:00:00.000Z')
  const reached = { value: true }
  const clock = { now: () => now, monotonic: () => now }
  const credentials = createCredentials(store, clock, () => reached.value)
  const session = newToken('session')
  const agent = newToken('agent')
  const iso = (later: number) => new Date(now + later).toISOString()
  const facts = { agentId: 'a1', agentVersion: '1', registeredAt: iso(0), enrollmentId: null }
  const enrolled = host(1, 'web1', { agent: { ...facts, tokenHash: agent.tokenHash, tokenUsed: false } })
  const login = { tokenHash: session.tokenHash, lastUsedAt: iso(0), expiresAt: iso(60 * minute) }
  await store.transact((tx) => {
    tx.put('users', user(1, 'alice'))
    tx.put('tokens', { ...token(1, 1), ...login })
    tx.put('hosts', enrolled)
  })
  return {
    store,
    enrolled,
    credentials,
    reached,
    session: session.token,
    agent: agent.token,
    pass: (milliseconds: number) => {
      now += milliseconds
    },
  }
}

test('a token seen before is accepted without reading the store again', async (t) => {
  const { credentials, agent, session } = await setUp(t)
  // The first use is recorded, which itself changes the store.
  for (let use = 0; use < 2; use++) for (const given of [agent, session]) await credentials(given)
  t.like(credentials(agent), { type: 'agent', hostId: 1, agentId: 'a1' })
  t.like(credentials(session), { type: 'user', username: 'alice' })
})

test('no token is accepted once the server has been cut off from its store for too long', async (t) => {
  const { credentials, reached, agent, session } = await setUp(t)
  for (const given of [agent, session]) await credentials(given)
  reached.value = false
  for (const given of [agent, session])
    await t.throwsAsync(Promise.resolve(credentials(given)), { code: 'unavailable' })
  reached.value = true
  t.like(await credentials(agent), { type: 'agent', hostId: 1 })
})

test('without its store, a server asks for longer waits (up to a minute) the more agents it knows', async (t) => {
  const { store, credentials, reached, enrolled, agent, session } = await setUp(t)
  const asked = async (given: string) => {
    reached.value = false
    const error = await t.throwsAsync(Promise.resolve(credentials(given)), { instanceOf: RsmError })
    reached.value = true
    return error?.retryAfter
  }
  t.is(await asked(agent), 2)
  const tokens = Array.from({ length: 1001 }, () => newToken('agent'))
  await store.transact((tx) => {
    for (const [at, { tokenHash }] of tokens.entries()) {
      const facts = enrolled.agent && { ...enrolled.agent, agentId: `b${at}`, tokenHash, tokenUsed: true }
      tx.put('hosts', host(at + 2, `db${at}`, { agent: facts }))
    }
  })
  for (const { token } of tokens) await credentials(token)
  t.is(await asked(agent), 6)
  t.is(await asked(session), 2)
})

test('a token revoked while its first use is recorded is refused, so it opens no link', async (t) => {
  const { store, enrolled, credentials, agent, session, pass } = await setUp(t)
  const { agent: facts } = enrolled
  const first = credentials(agent)
  await store.transact((tx) =>
    tx.put('hosts', { ...enrolled, agent: facts && { ...facts, tokenHash: null } }),
  )
  t.is(await first, undefined)
  await credentials(session)
  pass(30 * minute)
  const later = credentials(session)
  await store.transact((tx) => tx.remove('tokens', 1))
  t.is(await later, undefined)
})

test('a revoked agent, a disabled user and a removed session are refused as soon as the change is durable', async (t) => {
  const { store, enrolled, credentials, agent, session } = await setUp(t)
  for (let use = 0; use < 2; use++) for (const given of [agent, session]) await credentials(given)
  const { agent: facts } = enrolled
  await store.transact((tx) =>
    tx.put('hosts', { ...enrolled, agent: facts && { ...facts, tokenHash: null } }),
  )
  t.is(await credentials(agent), undefined)
  await store.transact((tx) => tx.put('users', { ...user(1, 'alice'), enabled: false }))
  t.is(await credentials(session), undefined)
  await store.transact((tx) => tx.put('users', user(1, 'alice')))
  t.like(await credentials(session), { username: 'alice' })
  await store.transact((tx) => tx.remove('tokens', 1))
  t.is(await credentials(session), undefined)
})

test('a new role applies from the next request', async (t) => {
  const { store, credentials, session } = await setUp(t)
  for (let use = 0; use < 2; use++) t.like(await credentials(session), { role: 'VIEWER' })
  await store.transact((tx) => tx.put('users', { ...user(1, 'alice'), role: 'OPERATOR' }))
  t.like(await credentials(session), { role: 'OPERATOR' })
})

test('a change to one host, session or user does not evict the others from the cache', async (t) => {
  const { store, credentials, agent, session, enrolled } = await setUp(t)
  const other = newToken('agent')
  const facts = enrolled.agent && { ...enrolled.agent, agentId: 'a2', tokenHash: other.tokenHash }
  await store.transact((tx) => {
    tx.put('hosts', host(2, 'web2', { agent: facts }))
    tx.put('users', user(2, 'bob'))
    tx.put('tokens', token(2, 2))
  })
  for (let use = 0; use < 2; use++)
    for (const given of [agent, session, other.token]) await credentials(given)
  const bob = { ...user(2, 'bob'), role: 'ADMIN' } as const
  await store.transact((tx) => {
    tx.put('hosts', host(2, 'web2', { agent: facts && { ...facts, tokenHash: null } }))
    tx.put('users', bob)
    tx.remove('tokens', 2)
  })
  t.like(credentials(agent), { hostId: 1 })
  t.like(credentials(session), { username: 'alice' })
  t.is(await credentials(other.token), undefined)
})

test('an agent that registers again is accepted only with its new token', async (t) => {
  const { store, credentials, agent, enrolled } = await setUp(t)
  for (let use = 0; use < 2; use++) await credentials(agent)
  const renewed = newToken('agent')
  const facts = enrolled.agent && { ...enrolled.agent, tokenHash: renewed.tokenHash }
  await store.transact((tx) => tx.put('hosts', { ...enrolled, agent: facts }))
  t.is(await credentials(agent), undefined)
  for (let use = 0; use < 2; use++) t.like(await credentials(renewed.token), { hostId: 1 })
  t.like(credentials(renewed.token), { hostId: 1 })
})

test('a change made while a token is looked up is not hidden by the cache', async (t) => {
  const { store, credentials, session } = await setUp(t)
  const get = store.get.bind(store)
  let demote: Promise<void> | undefined
  store.get = async (noun, id) => {
    const found = await get(noun, id)
    demote ??= store.transact((tx) => tx.put('users', { ...user(1, 'alice'), role: 'OPERATOR' }))
    await demote
    return found
  }
  await credentials(session)
  t.like(await credentials(session), { role: 'OPERATOR' })
})

test('a cached session expires by the clock alone', async (t) => {
  const { credentials, session, pass } = await setUp(t)
  t.like(await credentials(session), { username: 'alice' })
  pass(60 * minute - 1)
  t.like(await credentials(session), { username: 'alice' })
  pass(1)
  t.is(await credentials(session), undefined)
})
