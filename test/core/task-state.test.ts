import test from 'ava'
import { resultStatuses } from '../../src/core/protocol/http/tasks.ts'
import {
  emptyCounts,
  finalTaskStatus,
  isFailure,
  isFinal,
  nextStatus,
  type ResultEvent,
} from '../../src/core/task-state.ts'

const events: readonly ResultEvent[] = [
  'start',
  'succeed',
  'fail',
  'time-out',
  'cancel',
  'skip',
  'give-up-waiting',
  'lose',
]

test('final states never change', (t) => {
  for (const status of resultStatuses.filter(isFinal))
    for (const event of events) t.is(nextStatus(status, event), null, `${status} ${event}`)
})

test('a result goes from PENDING over RUNNING to its end', (t) => {
  t.is(nextStatus('PENDING', 'start'), 'RUNNING')
  t.is(nextStatus('RUNNING', 'start'), null)
  t.is(nextStatus('RUNNING', 'succeed'), 'SUCCESS')
  t.is(nextStatus('RUNNING', 'fail'), 'FAILED')
  t.is(nextStatus('RUNNING', 'time-out'), 'TIMEOUT')
  t.is(nextStatus('RUNNING', 'cancel'), 'CANCELLED')
  t.is(nextStatus('RUNNING', 'lose'), 'LOST')
})

test('what runs is neither skipped nor found unreachable', (t) => {
  t.is(nextStatus('PENDING', 'skip'), 'SKIPPED')
  t.is(nextStatus('RUNNING', 'skip'), null)
  t.is(nextStatus('PENDING', 'give-up-waiting'), 'UNREACHABLE')
  t.is(nextStatus('RUNNING', 'give-up-waiting'), null)
})

test('failed is every end but SUCCESS, SKIPPED and CANCELLED', (t) => {
  t.deepEqual(resultStatuses.filter(isFailure), ['FAILED', 'TIMEOUT', 'UNREACHABLE', 'LOST'])
})

test('counts begin at 0 for every status', (t) => {
  t.deepEqual(Object.keys(emptyCounts()), [...resultStatuses])
  t.true(Object.values(emptyCounts()).every((count) => count === 0))
})

test('a task is final when no host is PENDING or RUNNING, SUCCESS only when all succeeded', (t) => {
  const counts = (some: Partial<ReturnType<typeof emptyCounts>>) => ({ ...emptyCounts(), ...some })
  t.is(finalTaskStatus(counts({ PENDING: 1 }), true), null)
  t.is(finalTaskStatus(counts({ RUNNING: 1, FAILED: 1 }), false), null)
  t.is(finalTaskStatus(counts({ SUCCESS: 3 }), false), 'SUCCESS')
  t.is(finalTaskStatus(counts({ SUCCESS: 3 }), true), 'SUCCESS')
  t.is(finalTaskStatus(counts({ SUCCESS: 2, CANCELLED: 1 }), true), 'CANCELLED')
  t.is(finalTaskStatus(counts({ SUCCESS: 2, FAILED: 1 }), true), 'CANCELLED')
  for (const status of ['FAILED', 'TIMEOUT', 'SKIPPED', 'UNREACHABLE', 'LOST'] as const)
    t.is(finalTaskStatus(counts({ SUCCESS: 2, [status]: 1 }), false), 'FAILED', status)
})
