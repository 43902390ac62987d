import type { TaskSummary } from '../../../core/protocol/http/tasks.ts'
import type { Counts, TaskResult } from '../../../core/tasks/task.ts'
import type { Execution } from '../ports/executions.ts'
import { pick } from '../records/records.ts'
import type { TaskRecord } from '../records/task.ts'

type Kept = Pick<Execution, Exclude<keyof TaskResult, Added>> & Partial<Pick<TaskResult, Added>>
/** Fields that results of older servers lack. */
type Added = 'phase' | 'verify' | 'rollback'

export function resultOf(execution: Kept): TaskResult {
  return {
    ...pick(
      execution,
      'hostId',
      'hostname',
      'status',
      'exitCode',
      'signal',
      'startedAt',
      'completedAt',
      'duration',
    ),
    ...pick(execution, 'stdoutBytes', 'stderrBytes', 'truncated', 'outputComplete', 'error'),
    containment: execution.containment ?? null,
    survivors: execution.survivors === undefined ? [] : execution.survivors,
    changed: execution.changed ?? null,
    phase: execution.status === 'RUNNING' ? (execution.phase ?? 'SCRIPT') : null,
    verify: execution.verify ?? null,
    rollback: execution.rollback ?? null,
    lateResult: execution.lateResult,
  }
}

function gatesToApi({ gates }: TaskRecord): Pick<TaskSummary, 'verify' | 'rollback'> {
  const named = ['scriptId', 'scriptVersion', 'scriptName', 'firstLine', 'type', 'timeout'] as const
  const { verify, rollback } = gates ?? {}
  return {
    verify: verify ? pick(verify, ...named, 'retries', 'intervalSeconds') : null,
    rollback: rollback ? pick(rollback, ...named) : null,
  }
}

function filesToApi({
  copy,
  fetch,
  stdin,
  fileName,
}: TaskRecord): Pick<TaskSummary, 'copy' | 'fetch' | 'stdin'> {
  const name = fileName ?? null
  return {
    copy: copy ? { ...copy, file: { ...copy.file, name } } : null,
    fetch: fetch ?? null,
    stdin: stdin ? { ...stdin, name } : null,
  }
}

/** Task as lists and events show it; `counts` of a running one come from its executions. */
export function summaryOf(task: TaskRecord, counts: Counts): TaskSummary {
  return {
    taskId: task.id,
    ...pick(task, 'status', 'hostCount'),
    counts: { ...counts },
    ...pick(task, 'strategy', 'batchSize', 'scriptId', 'scriptVersion', 'scriptName'),
    firstLine: task.firstLine ?? null,
    ...pick(task, 'type', 'timeout', 'runAs'),
    limits: task.limits ?? null,
    ...gatesToApi(task),
    ...filesToApi(task),
    limitRate: task.limitRate ?? null,
    clusterId: task.clusterId,
    retryOf: task.retryOf ?? null,
    scheduleId: task.scheduleId ?? null,
    plannedAt: task.plannedAt ?? null,
    ...pick(task, 'createdBy', 'createdAt', 'startedAt', 'completedAt', 'duration'),
  }
}
