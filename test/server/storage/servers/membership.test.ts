import { mock } from 'node:test'
import test from 'ava'
import { RsmError } from '../../../../src/core/errors.ts'
import { createLog } from '../../../../src/disk/log.ts'
import { createCluster } from '../../../../src/server/storage/files/cluster.ts'
import { lease, renewEvery } from '../../../../src/server/storage/ports/cluster.ts'
import { joinServers } from '../../../../src/server/storage/servers/membership.ts'
import { ShiftedClock } from '../../../helpers/faults/shifted-clock.ts'
import { until } from '../../../helpers/until.ts'

/** Renewals are made when a test says so. */
test.before(() => mock.timers.enable({ apis: ['setInterval'] }))
test.after(() => mock.timers.reset())

test('a lease counts from when its renewal was asked for, and holds until that is too long ago', async (t) => {
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

test('a lease that a connection made again has renewed holds before the next turn of the timer', async (t) => {
  const clock = new ShiftedClock()
  const { ownership } = createCluster(clock)
  const membership = await joinServers(ownership, 'a', { clock, log: createLog('ERROR') })
  clock.forward(lease / 1000)
  t.false(membership.holds())
  await ownership.renew(membership.member)
  t.true(membership.holds())
  await membership.leave()
  t.true(membership.holds(), 'what it still sends while it stops')
})

test('a server learns that another has joined under its name', async (t) => {
  const clock = new ShiftedClock()
  const { ownership } = createCluster(clock)
  const membership = await joinServers(ownership, 'a', { clock, log: createLog('ERROR') })
  const other = await ownership.join('a')
  mock.timers.tick(renewEvery)
  t.is((await membership.fenced).message, 'another server has taken the name a')
  t.true(await ownership.renew(other))
})
