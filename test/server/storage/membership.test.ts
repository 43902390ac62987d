import { mock } from 'node:test'
import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { createLog } from '../../../src/disk/log.ts'
import { createCluster } from '../../../src/server/storage/files/cluster.ts'
import { joinServers } from '../../../src/server/storage/membership.ts'
import { lease, renewEvery } from '../../../src/server/storage/ports/cluster.ts'
import { ShiftedClock } from '../../helpers/faults/shifted-clock.ts'
import { until } from '../../helpers/until.ts'

/** Renewals happen only when a test triggers them. */
test.before(() => mock.timers.enable({ apis: ['setInterval'] }))
test.after(() => mock.timers.reset())

test('a lease counts from the time its renewal was requested, and expires after the lease time', async (t) => {
  const clock = new ShiftedClock()
  const { ownership } = createCluster(clock)
  let isAway = false
  const renew = ownership.renew.bind(ownership)
  ownership.renew = async (member) => {
    if (isAway) throw new RsmError('unavailable', 'the store cannot be reached just now')
    return renew(member)
  }
  const membership = await joinServers(ownership, 'a', { clock, log: createLog('ERROR') })
  t.true(membership.holds())
  clock.forward(lease / 1000 - 1)
  t.true(membership.holds())
  isAway = true
  clock.forward(1)
  t.false(membership.holds())
  isAway = false
  mock.timers.tick(renewEvery)
  await until('it is renewed', () => membership.holds())
  await membership.leave()
})

test('a lease renewed by a restored connection holds before the next tick of the timer', async (t) => {
  const clock = new ShiftedClock()
  const { ownership } = createCluster(clock)
  const membership = await joinServers(ownership, 'a', { clock, log: createLog('ERROR') })
  clock.forward(lease / 1000)
  t.false(membership.holds())
  await ownership.renew(membership.member)
  t.true(membership.holds())
  await membership.leave()
  t.true(membership.holds(), 'it may still send while it stops')
})

test('a server learns that another one has joined under its name', async (t) => {
  const clock = new ShiftedClock()
  const { ownership } = createCluster(clock)
  const membership = await joinServers(ownership, 'a', { clock, log: createLog('ERROR') })
  const other = await ownership.join('a')
  mock.timers.tick(renewEvery)
  t.is((await membership.fenced).message, 'another server has taken the name a')
  t.true(await ownership.renew(other))
})
