import test from 'ava'
import {
  emptyCounts,
  finalTaskStatus,
  isFailure,
  isFinal,
  mayBecome,
  resultStatuses,
} from '../../../src/core/tasks/task.ts'

test('final states never change', (t) => {
  for (const from of resultStatuses.filter(isFinal))
    for (const to of resultStatuses) t.false(mayBecome(from, to), `${from} ${to}`)
})

test('a result goes from PENDING through RUNNING to a final status', (t) => {
  t.true(mayBecome('PENDING', 'RUNNING'))
  for (const end of ['SUCCESS', 'FAILED', 'TIMEOUT', 'CANCELLED', 'LOST'] as const)
    t.true(mayBecome('RUNNING', end), end)
  t.true(mayBecome('RUNNING', 'PENDING'), 'the frame was never sent')
})

test('a RUNNING result becomes neither SKIPPED nor UNREACHABLE', (t) => {
  t.true(mayBecome('PENDING', 'SKIPPED'))
  t.true(mayBecome('PENDING', 'UNREACHABLE'))
  t.false(mayBecome('RUNNING', 'SKIPPED'))
  t.false(mayBecome('RUNNING', 'UNREACHABLE'))
})

test('every final status except SUCCESS, SKIPPED and CANCELLED is a failure', (t) => {
  t.deepEqual(resultStatuses.filter(isFailure), ['FAILED', 'TIMEOUT', 'UNREACHABLE', 'LOST'])
})

test('counts start at 0 for every status', (t) => {
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
