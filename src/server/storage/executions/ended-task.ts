import { type Counts, finalTaskStatus, type TaskResult } from '../../../core/tasks/task.ts'
import { isoTime } from '../../../disk/clock.ts'
import type { TaskRemains } from '../ports/outputs.ts'
import type { TaskGates, TaskRecord } from '../records/task.ts'

/** A task once all of its executions have ended; null while one has not, or when it has ended before. `now`: milliseconds since 1970. */
export function endedTask(task: TaskRecord, counts: Readonly<Counts>, now: number): TaskRecord | null {
  if (task.status !== 'RUNNING') return null
  const status = finalTaskStatus(counts, task.cancelRequestedAt !== null)
  if (status === null) return null
  const started = Date.parse(task.startedAt ?? task.createdAt)
  return {
    ...task,
    status,
    counts: { ...counts },
    content: null,
    ...(task.gates && { gates: withoutTexts(task.gates) }),
    secretParams: null,
    pauseUntil: null,
    completedAt: isoTime(Math.max(now, started)),
    duration: Math.max(0, now - started),
  }
}

const withoutTexts = ({ verify, rollback }: TaskGates): TaskGates => ({
  script: null,
  verify: verify && { ...verify, content: null },
  rollback: rollback && { ...rollback, content: null },
})

export type Texts = Omit<TaskRemains, 'results'>

/** The texts that a running task leaves when it ends. */
export function textsOf({ content, gates }: TaskRecord): Texts {
  if (!gates) return { script: content ?? '' }
  const { script, verify, rollback } = gates
  const texts = { verify: verify?.content ?? null, rollback: rollback?.content ?? null }
  return { script: script ?? '', gates: texts }
}

/** Whether what is learnt of a host after its final state is news: once, and only where no end is known. */
export function isNews({
  exitCode,
  verify,
  lateResult,
}: Pick<TaskResult, 'exitCode' | 'lateResult'> & { verify?: unknown }): boolean {
  return exitCode === null && !verify && lateResult === null
}
