import type { ExecutionContext } from 'ava'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import { lease } from '../../../src/server/storage/ports/cluster.ts'
import { openChannel } from '../../../src/server/storage/postgres/hints/channel.ts'
import { createHints } from '../../../src/server/storage/postgres/hints/hints.ts'
import { createLinks } from '../../../src/server/storage/postgres/links.ts'
import { openOwnership } from '../../../src/server/storage/postgres/ownership/ownership.ts'
import { startCutLink } from '../../helpers/faults/cut-link.ts'
import { type SharedPostgres, sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { sharedStore } from '../../helpers/servers/shared-store.ts'
import { until } from '../../helpers/until.ts'

let shared: Promise<SharedPostgres> | undefined

async function started(t: ExecutionContext) {
  shared ??= sharedPostgres()
  const store = await sharedStore(await shared, (end) => t.teardown(end))
  async function server(name: string, how: 'hears' | 'deaf' = 'hears') {
    const network = await startCutLink(t, store.url.replace('postgres:', 'http:'))
    const parts = await store.server(name, network.url)
    const channel = await openChannel(parts)
    const hints = how === 'deaf' ? createLocalHints() : createHints(channel, parts.log)
    const ownership = await openOwnership({ ...parts, hints, version: '0.1.0' })
    const links = createLinks({ ...parts, hints, ownership })
    t.teardown(async () => {
      links.close()
      await ownership.close()
      await channel.close()
    })
    const member = await ownership.join(name)
    const superseded: number[] = []
    const claim = (hostId: number, agentId = 'agent') =>
      links.claim(hostId, { server: member, agentId }, () => superseded.push(hostId))
    return { network, links, ownership, member, claim, superseded }
  }
  return { store, server }
}

test('P12 the previous holder learns of a newer claim at another server', async (t) => {
  const { server } = await started(t)
  const [a, b] = [await server('a'), await server('b')]
  await a.claim(1)
  const other = await a.claim(2)
  const newer = await b.claim(1)
  await until('the previous holder learns of the claim', () => a.superseded.length > 0)
  t.deepEqual([a.superseded, b.superseded], [[1], []])
  t.deepEqual(await a.links.holder(1), newer?.claim ?? null)
  t.deepEqual(await b.links.holder(2), other?.claim ?? null)
})

test('P12 F28 without hints a previous holder also learns of newer claims, however many links it holds', async (t) => {
  const { server } = await started(t)
  const [a, b] = [await server('a', 'deaf'), await server('b')]
  await Promise.all(Array.from({ length: 3000 }, (_, at) => a.claim(at + 1)))
  await b.claim(1)
  await b.claim(3000)
  await until('the previous holder learns of both claims', () => a.superseded.length === 2)
  t.deepEqual(
    a.superseded.toSorted((one, other) => one - other),
    [1, 3000],
  )
})

test("P13 two clones that link to different servers are noticed, and each server's refusal ends separately", async (t) => {
  const { server, store } = await started(t)
  const [a, b] = [await server('a'), await server('b')]
  const claimed = []
  for (const { claim } of [a, b, a, b]) claimed.push(await claim(1, 'clone'))
  t.deepEqual(
    claimed.map((one) => one?.isDuplicate),
    [false, false, false, true],
  )
  t.is(await a.claim(1, 'clone'), null)
  t.deepEqual([a.links.refuses(1), b.links.refuses(1)], [true, true])
  await until('the server without the link stops refusing', () => !a.links.refuses(1))
  t.true(b.links.refuses(1))
  await store.forward(5 * 60_000)
  const ended = await Promise.all([a, b, a, b].map(({ links }) => links.expire()))
  t.deepEqual(ended.flat(), [1])
})

test('a hundred hosts that link to two servers at once have one holder each, and replaced links are notified', async (t) => {
  const { server } = await started(t)
  const [a, b] = [await server('a'), await server('b')]
  const hosts = Array.from({ length: 100 }, (_, at) => at + 1)
  const claims = await Promise.all(
    hosts.flatMap((hostId) => [a.claim(hostId), b.claim(hostId), a.claim(hostId)]),
  )
  t.true(claims.every((claimed) => claimed !== null))
  await until('the replaced links are notified', () => a.superseded.length + b.superseded.length === 200)
  for (const hostId of hosts) {
    const holder = await a.links.holder(hostId)
    const ofHost = claims.flatMap((claimed) =>
      claimed?.claim.hostId === hostId ? [claimed.claim.epoch] : [],
    )
    t.is(holder?.epoch, Math.max(...ofHost))
  }
})

test('a server whose lease has expired by its own clock claims no link', async (t) => {
  const { server, store } = await started(t)
  const { claim, ownership, member } = await server('a')
  await store.forward(lease)
  await t.throwsAsync(claim(1), { code: 'unavailable', message: /lease of this server is over/ })
  await ownership.renew(member)
  t.truthy(await claim(1))
})

test('a link that closes while the store is unavailable is released once the store is back', async (t) => {
  const { server } = await started(t)
  const [a, b] = [await server('a'), await server('b')]
  const claimed = await a.claim(1)
  if (!claimed) throw new Error('the claim was refused')
  a.network.freeze()
  a.network.cut()
  await t.throwsAsync(a.links.release(claimed.claim), { code: 'unavailable' })
  t.truthy(await b.links.holder(1))
  a.network.thaw()
  a.network.cut()
  await until('the link is released', async () => (await b.links.holder(1)) === null)
})
