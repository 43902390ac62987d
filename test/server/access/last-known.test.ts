import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { createCredentials, lastKnown, newToken } from '../../../src/server/access/credentials.ts'
import { openJsonStore } from '../../../src/server/storage/files/store/store.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { host, token, user } from '../../helpers/servers/store-records.ts'

const hour = 3_600_000

test('a token valid at the last contact with the store is accepted until it expires or its revocation is known', async (t) => {
  const store = await openJsonStore({ directory: temporaryDirectory(t) })
  t.teardown(() => store.close())
  let now = Date.parse('2026-01-01T00:00:00.000Z')
  const clock = { now: () => now, monotonic: () => now }
  let isAway = false
  const usual = createCredentials(store, clock, () => !isAway)
  const credentials = lastKnown(store, clock, usual)
  const iso = (later: number) => new Date(now + later).toISOString()
  const made = ['alice', 'bob', 'carol', 'dave', 'erin'].map((name) => ({ name, ...newToken('personal') }))
  const [alice, bob, carol, dave, erin] = made.map((each) => each.token)
  const agent = newToken('agent')
  await store.transact((tx) => {
    made.forEach(({ name, tokenHash }, at) => {
      const times = { lastUsedAt: iso(0), expiresAt: iso(at === 3 ? hour : 99 * hour) }
      tx.put('users', user(at + 1, name))
      tx.put('tokens', { ...token(at + 1, at + 1), kind: 'personal', tokenHash, ...times })
    })
    const facts = { agentId: 'a1', agentVersion: '1', registeredAt: iso(0), enrollmentId: null }
    tx.put('hosts', host(1, 'web1', { agent: { ...facts, tokenHash: agent.tokenHash, tokenUsed: true } }))
  })
  const ask = async (given: string | undefined) => {
    try {
      const caller = await credentials(given ?? '')
      return caller?.type === 'user' ? caller.username : caller?.type
    } catch (error) {
      return error instanceof RsmError ? error.code : error
    }
  }
  for (const [given, who] of [
    [alice, 'alice'],
    [bob, 'bob'],
    [carol, 'carol'],
    [dave, 'dave'],
    [agent.token, 'agent'],
  ])
    t.is(await ask(given), who)
  // One token is revoked, one belongs to a disabled user, one expires, and one was never used here.
  await store.transact(async (tx) => {
    tx.remove('tokens', 2)
    tx.put('users', { ...user(3, 'carol'), enabled: false })
  })
  now += 2 * hour
  isAway = true
  await t.throwsAsync(Promise.resolve(usual(alice ?? '')), { code: 'unavailable' })
  t.is(await ask(alice), 'alice')
  for (const given of [bob, carol, dave, erin, agent.token]) t.is(await ask(given), 'unavailable')
  t.is(await ask('junk'), undefined)
  isAway = false
  t.is(await ask(erin), 'erin')
  t.is(await ask(bob), undefined)
})

test('a token revoked while it is looked up is refused during a store outage', async (t) => {
  const store = await openJsonStore({ directory: temporaryDirectory(t) })
  t.teardown(() => store.close())
  const caller = { ...user(1, 'alice'), type: 'user', tokenId: 1, idleAt: Infinity } as never
  await store.transact((tx) => {
    tx.put('users', user(1, 'alice'))
    tx.put('tokens', token(1, 1))
  })
  let isAway = false
  const credentials = lastKnown(store, { now: () => 0, monotonic: () => 0 }, async () => {
    if (isAway) throw new RsmError('unavailable', 'the store cannot be reached just now')
    await store.transact((tx) => tx.remove('tokens', 1))
    await setImmediate()
    return caller
  })
  t.is(await credentials('a token'), caller)
  isAway = true
  await t.throwsAsync(Promise.resolve(credentials('a token')), { code: 'unavailable' })
})

test('a full cache of tokens evicts the least recently used one', async (t) => {
  const store = await openJsonStore({ directory: temporaryDirectory(t) })
  t.teardown(() => store.close())
  let isAway = false
  const credentials = lastKnown(store, { now: () => 0, monotonic: () => 0 }, async (given) => {
    if (isAway) throw new RsmError('unavailable', 'the store cannot be reached just now')
    return { type: 'user', tokenId: Number(given), idleAt: Infinity } as never
  })
  for (let at = 0; at < 1024; at++) await credentials(String(at))
  await credentials('0')
  await credentials('1024')
  isAway = true
  for (const kept of ['0', '2', '1024']) t.like(await credentials(kept), { type: 'user' })
  await t.throwsAsync(Promise.resolve(credentials('1')), { code: 'unavailable' })
})
