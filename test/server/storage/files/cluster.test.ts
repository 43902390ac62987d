import test from 'ava'
import { createCluster } from '../../../../src/server/storage/files/cluster.ts'
import { lease } from '../../../../src/server/storage/ports/cluster.ts'
import { linksContract } from '../../../contracts/links.ts'
import { ownershipContract } from '../../../contracts/ownership.ts'

function timed() {
  let now = 0
  const cluster = createCluster({ now: () => Date.now(), monotonic: () => now })
  return { ...cluster, forward: (time: number) => void (now += time) }
}

ownershipContract(test, async () => timed())
linksContract(test, async () => timed())

test('F13 no lease expires in a process that was suspended', async (t) => {
  const { ownership, forward } = timed()
  const [a, b] = [await ownership.join('a'), await ownership.join('b')]
  await ownership.claim(a, ['t1'])
  forward(100 * lease)
  t.deepEqual(await ownership.owner('t1'), a)
  t.deepEqual(await ownership.claim(b, ['t1']), [])
  t.true(ownership.isLiving(a))
})

test('a restarted process finds no members and no owned tasks', async (t) => {
  const former = timed().ownership
  await former.claim(await former.join('server'), ['t1'])
  const { ownership } = timed()
  t.is(await ownership.owner('t1'), null)
  t.deepEqual(await ownership.claim(await ownership.join('server'), ['t1']), ['t1'])
})
