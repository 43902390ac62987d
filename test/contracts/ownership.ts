import type { TestFn } from 'ava'
import { lease, type Ownership, renewEvery } from '../../src/server/storage/ports/cluster.ts'

/** An Ownership without members, and a way to let time pass for it. */
interface Timed {
  ownership: Ownership
  /** Milliseconds. */
  forward: (time: number) => void | Promise<void>
}

/** Suite for every implementation of Ownership. */
export function ownershipContract(test: TestFn, make: () => Promise<Timed>) {
  test('a task belongs to the first member that claims it, and to no other', async (t) => {
    const { ownership } = await make()
    const [a, b] = [await ownership.join('a'), await ownership.join('b')]
    t.deepEqual(await ownership.claim(a, ['t1', 't2']), ['t1', 't2'])
    t.deepEqual(await ownership.claim(b, ['t2', 't3']), ['t3'])
    t.deepEqual(await ownership.claim(a, ['t1', 't3']), ['t1'])
    t.deepEqual(await ownership.owner('t2'), a)
    t.is(await ownership.owner('t4'), null)
    t.true(await ownership.holds(a, 't2'))
    t.false(await ownership.holds(b, 't2'))
    t.false(await ownership.holds(a, 't4'))
  })

  test('one of many members that claim a task at once gets it', async (t) => {
    const { ownership } = await make()
    const members = await Promise.all(Array.from({ length: 20 }, (_, n) => ownership.join(`server${n}`)))
    const taken = await Promise.all(members.map((member) => ownership.claim(member, ['t1'])))
    t.is(taken.flat().length, 1)
  })

  test('joining a name again fences its previous life, whose tasks are free at once', async (t) => {
    const { ownership } = await make()
    const former = await ownership.join('a')
    await ownership.claim(former, ['t1', 't2'])
    const present = await ownership.join('a')
    t.true(present.epoch > former.epoch)
    t.false(await ownership.holds(former, 't1'))
    t.is(await ownership.owner('t1'), null)
    t.false(await ownership.renew(former))
    t.is(ownership.renewedAt(former), null)
    t.deepEqual(await ownership.claim(former, ['t1', 't3']), [])
    await ownership.leave(former)
    t.deepEqual(await ownership.claim(present, ['t1']), ['t1'])
    await ownership.release(former, ['t1'])
    t.true(await ownership.holds(present, 't1'))
    t.false(await ownership.holds(present, 't2'))
  })

  test('a renewal moves the time from which the lease of its member counts', async (t) => {
    const { ownership, forward } = await make()
    const member = await ownership.join('a')
    const joined = ownership.renewedAt(member) ?? Number.NaN
    await forward(lease)
    t.true(await ownership.renew(member))
    t.true((ownership.renewedAt(member) ?? Number.NaN) >= joined + lease)
    await ownership.leave(member)
    t.is(ownership.renewedAt(member), null)
  })

  test('a member that leaves frees its tasks at once', async (t) => {
    const { ownership } = await make()
    const [a, b] = [await ownership.join('a'), await ownership.join('b')]
    await ownership.claim(a, ['t1'])
    await ownership.leave(a)
    t.is(await ownership.owner('t1'), null)
    t.false(await ownership.holds(a, 't1'))
    t.false(await ownership.renew(a))
    t.deepEqual(await ownership.claim(b, ['t1']), ['t1'])
  })

  test('a member that does not renew during its lease has lapsed, and others may take its tasks', async (t) => {
    const { ownership, forward } = await make()
    const [a, b] = [await ownership.join('a'), await ownership.join('b')]
    await ownership.claim(a, ['t1'])
    // The clock of a real store also advances on its own.
    for (let time = renewEvery; time < lease / 2; time += renewEvery) {
      await forward(renewEvery)
      t.true(await ownership.renew(b))
      t.deepEqual(await ownership.owner('t1'), a)
      t.deepEqual(await ownership.claim(b, ['t1']), [])
    }
    await forward(lease - renewEvery)
    await ownership.renew(b)
    t.is(await ownership.owner('t1'), null)
    t.deepEqual(await ownership.claim(b, ['t1']), ['t1'])
  })

  test('a member that returns after its lease takes no steps on a task that another one claimed', async (t) => {
    const { ownership, forward } = await make()
    const [zombie, other] = [await ownership.join('a'), await ownership.join('b')]
    await ownership.claim(zombie, ['t1'])
    await forward(lease)
    await ownership.renew(other)
    await ownership.claim(other, ['t1'])
    t.false(await ownership.holds(zombie, 't1'))
    t.true(await ownership.renew(zombie))
    t.false(await ownership.holds(zombie, 't1'))
    t.deepEqual(await ownership.claim(zombie, ['t1']), [])
  })

  test('a member that renews too late keeps the tasks that no other member claimed', async (t) => {
    const { ownership, forward } = await make()
    const [late, other] = [await ownership.join('a'), await ownership.join('b')]
    await ownership.claim(late, ['t1'])
    await forward(10 * lease)
    await ownership.renew(other)
    t.true(await ownership.renew(late))
    t.true(await ownership.holds(late, 't1'))
    t.deepEqual(await ownership.owner('t1'), late)
    t.deepEqual(await ownership.claim(other, ['t1']), [])
  })

  test('a task that its owner releases is free; only the owner can release it', async (t) => {
    const { ownership } = await make()
    const [a, b] = [await ownership.join('a'), await ownership.join('b')]
    await ownership.claim(a, ['t1'])
    await ownership.release(b, ['t1'])
    t.true(await ownership.holds(a, 't1'))
    await ownership.release(a, ['t1'])
    t.is(await ownership.owner('t1'), null)
    t.deepEqual(await ownership.claim(b, ['t1']), ['t1'])
  })
}
