import type { TestFn } from 'ava'
import { type Links, lease, type Member, type Ownership } from '../../src/server/storage/ports/cluster.ts'
import { until } from '../helpers/until.ts'

const minute = 60_000

/** Links without any claim, and a way to let time pass for them. */
interface Timed {
  links: Links
  ownership: Ownership
  /** Milliseconds. */
  forward: (time: number) => void | Promise<void>
}

const ignore = () => undefined

/** Suite for every implementation of Links. */
export function linksContract(test: TestFn, make: () => Promise<Timed>) {
  /** Servers a and b, and claims by either. */
  async function twoServers() {
    const made = await make()
    const [a, b] = [await made.ownership.join('a'), await made.ownership.join('b')]
    const claim = (hostId: number, server: Member, superseded: () => void = ignore) =>
      made.links.claim(hostId, { server, agentId: `agent-${hostId}` }, superseded)
    const mustClaim = async (hostId: number, server: Member, superseded?: () => void) => {
      const claimed = await claim(hostId, server, superseded)
      if (!claimed) throw new Error(`The claim of host ${hostId} is refused`)
      return claimed.claim
    }
    /** Lets time pass while both servers stay alive. */
    const pass = async (time: number) => {
      await made.forward(time)
      for (const server of [a, b]) await made.ownership.renew(server)
    }
    return { ...made, a, b, claim, mustClaim, pass }
  }

  test('P12 the newest claim of a host holds its link, on whichever server; the previous holder is notified', async (t) => {
    const { links, a, b, mustClaim } = await twoServers()
    const heard: string[] = []
    const first = await mustClaim(1, a, () => heard.push('first'))
    t.deepEqual(await links.holder(1), first)
    const second = await mustClaim(1, b, () => heard.push('second'))
    await until('the previous holder is notified', () => heard.length > 0)
    t.deepEqual(heard, ['first'])
    t.like(await links.holder(1), { hostId: 1, agentId: 'agent-1', server: b, epoch: second.epoch })
    t.false(Number.isNaN(Date.parse(second.since)))
  })

  test('epochs rise across the claims of all hosts and servers', async (t) => {
    const { a, b, mustClaim } = await twoServers()
    const claims = [
      await mustClaim(1, a),
      await mustClaim(2, b),
      await mustClaim(1, b),
      await mustClaim(3, a),
    ]
    const epochs = claims.map(({ epoch }) => epoch)
    t.deepEqual(
      epochs,
      [...new Set(epochs)].sort((x, y) => x - y),
    )
  })

  test('a released link has no holder, and releasing an older claim does not affect a newer one', async (t) => {
    const { links, a, b, mustClaim } = await twoServers()
    const [first, second] = [await mustClaim(1, a), await mustClaim(1, b)]
    await links.release(first)
    t.deepEqual(await links.holder(1), second)
    await links.release(second)
    t.is(await links.holder(1), null)
  })

  test('the holders of many hosts are read at once, without hosts that have none', async (t) => {
    const { links, a, b, mustClaim } = await twoServers()
    const [one, three] = [await mustClaim(1, a), await mustClaim(3, b)]
    t.deepEqual(await links.holders([1, 2, 3]), new Map(), 'none is ready')
    for (const claim of [one, three]) await links.ready(claim)
    t.deepEqual(
      await links.holders([1, 2, 3]),
      new Map([
        [1, one],
        [3, three],
      ]),
    )
    const newer = await mustClaim(1, b)
    await links.ready(one)
    t.deepEqual([...(await links.holders([1, 2, 3])).keys()], [3], 'the newer one is not ready')
    await links.ready(newer)
    t.deepEqual([...(await links.holders([1, 2, 3])).keys()], [1, 3])
  })

  test('P13 F12 after three replacements within a minute, at any servers, new claims are refused for five minutes', async (t) => {
    const { links, a, b, claim, pass } = await twoServers()
    for (const server of [a, b, a]) t.like(await claim(1, server), { isDuplicate: false })
    t.false(links.refuses(1))
    const heard: string[] = []
    const claimed = await claim(1, b, () => heard.push('superseded'))
    t.true(claimed?.isDuplicate)
    t.true(links.refuses(1))
    t.is(await claim(1, a), null)
    t.deepEqual([await links.holder(1), heard], [claimed?.claim ?? null, []])
    t.false(links.refuses(2))
    await pass(5 * minute - 1000)
    t.deepEqual(await links.expire(), [])
    t.true(links.refuses(1))
    await pass(1000)
    t.deepEqual(await links.expire(), [1])
    t.deepEqual(await links.expire(), [], 'it expires once')
    t.false(links.refuses(1))
    t.truthy(await claim(1, a))
  })

  test('P13 a host whose holder is gone may be claimed while new claims are refused', async (t) => {
    const { links, a, b, claim, mustClaim } = await twoServers()
    for (const server of [a, b, a]) await mustClaim(1, server)
    await links.release(await mustClaim(1, b))
    t.false(links.refuses(1))
    t.truthy(await claim(1, a))
    t.true(links.refuses(1))
  })

  test('P13 replacements that are further apart, or of a released link, do not count as a fight', async (t) => {
    const { links, a, mustClaim, pass } = await twoServers()
    for (let n = 0; n < 6; n++) {
      await mustClaim(1, a)
      await pass(minute / 2)
      await links.expire()
    }
    t.false(links.refuses(1))
    for (let n = 0; n < 6; n++) await links.release(await mustClaim(2, a))
    t.false(links.refuses(2))
  })

  test('a server that left or whose lease expired holds no link, and its agents may move without a fight', async (t) => {
    const { links, ownership, a, b, mustClaim, forward } = await twoServers()
    for (const hostId of [1, 2]) await links.ready(await mustClaim(hostId, a))
    await ownership.leave(a)
    t.is(await links.holder(1), null)
    const c = await ownership.join('c')
    const atC = await mustClaim(1, c)
    await forward(lease)
    await ownership.renew(b)
    t.is(await links.holder(1), null)
    t.deepEqual(await links.holders([1, 2]), new Map())
    // Time alone decides nothing: until another server claims the host, a holder that comes back holds it.
    await ownership.renew(c)
    t.deepEqual(await links.holder(1), atC)
    await forward(lease)
    await ownership.renew(b)
    for (let n = 0; n < 3; n++) await mustClaim(1, b)
    t.false(links.refuses(1))
    t.like(await links.holder(1), { server: b })
  })
}
