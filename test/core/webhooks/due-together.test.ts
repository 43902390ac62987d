import test from 'ava'
import { dueTogether } from '../../../src/core/webhooks/webhook.ts'

const told = (since: Record<number, number>, now: number) =>
  dueTogether(new Map(Object.entries(since).map(([id, at]) => [Number(id), at])), now, 60)

test('a single host is due exactly when its grace period ends', (t) => {
  t.deepEqual(told({}, 1000), [])
  t.deepEqual(told({ 1: 0 }, 59), [])
  t.deepEqual(told({ 1: 0 }, 60), [1])
})

test('hosts that follow each other within their grace period are due together', (t) => {
  const since = { 1: 0, 2: 10, 3: 55 }
  t.deepEqual(told(since, 60), [])
  t.deepEqual(told(since, 114), [])
  t.deepEqual(told(since, 115), [1, 2, 3])
})

test('a host that is always followed by another waits at most twice its grace period', (t) => {
  const since = { 1: 0, 2: 50, 3: 100, 4: 119 }
  t.deepEqual(told(since, 119), [])
  t.deepEqual(told(since, 120), [1, 2])
})
