import test from 'ava'
import type { ExecutionRecord, TaskRecord } from '../../../../src/server/storage/records/task.ts'
import { planOf } from '../../../../src/server/tasks/scheduler/task-runner.ts'

const end = Date.parse('2026-11-21T03:00:00.000Z')
const iso = (milliseconds: number) => new Date(milliseconds).toISOString()

const taskOf = (pauseUntil: string | null) =>
  ({
    id: 't1',
    strategy: 'SEQUENTIAL',
    batchSize: null,
    concurrency: null,
    maxFailures: null,
    pauseSeconds: 60,
    pauseUntil,
  }) as TaskRecord

const executionOf = (position: number, completedAt: string | null) =>
  ({
    id: `t1/${position}`,
    hostId: position + 1,
    position,
    completedAt,
    ...(completedAt === null ? { status: 'PENDING', dueAt: null } : { status: 'SUCCESS', dueAt: iso(0) }),
  }) as ExecutionRecord

test('a server killed before it stored a pause counts the pause from the last end, without starting it again', (t) => {
  const executions = [executionOf(0, iso(end - 90_000)), executionOf(1, iso(end)), executionOf(2, null)]
  const plan = planOf(taskOf(null), executions)
  t.like(plan.decide(end + 45_000), { start: [], pauseUntil: end + 60_000 })
  t.deepEqual(plan.decide(end + 60_000).start, [2])
  t.deepEqual(planOf(taskOf(null), executions).decide(end + 3_600_000).start, [2])
})

test('a stored pause lasts until its time', (t) => {
  const executions = [executionOf(0, iso(end)), executionOf(1, null)]
  const plan = planOf(taskOf(iso(end + 20_000)), executions)
  t.like(plan.decide(end + 10_000), { start: [], pauseUntil: end + 20_000 })
})
