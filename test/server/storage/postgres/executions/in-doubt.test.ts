import test from 'ava'
import { InDoubt } from '../../../../../src/server/storage/postgres/executions/sending.ts'
import { ShiftedClock } from '../../../../helpers/faults/shifted-clock.ts'

const claim = { hostId: 1, agentId: 'a', server: { name: 's', epoch: 1 }, epoch: 2, since: '' }

test('doubtful attempts are listed as ranges that contain no answered attempt', (t) => {
  const clock = new ShiftedClock()
  const doubtful = new InDoubt(clock)
  t.is(doubtful.attemptsOf(claim), null)
  // The gaps are attempts of other hosts.
  for (let attempt = 4; attempt <= 10_000; attempt += 2) doubtful.add(claim, attempt)
  t.is(doubtful.attemptsOf(claim), '{[4,10000]}')
  doubtful.answered(claim, clock.monotonic())
  doubtful.add(claim, 10_002)
  t.is(doubtful.attemptsOf(claim), '{[4,10000],[10002,10002]}')
  const asked = clock.monotonic()
  doubtful.answered(claim, asked)
  clock.forward(31)
  doubtful.answered(claim, asked)
  t.not(doubtful.attemptsOf(claim), null, 'its answer was late')
  doubtful.answered(claim, clock.monotonic())
  t.is(doubtful.attemptsOf(claim), null)
})
