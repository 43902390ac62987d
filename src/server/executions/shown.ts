import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { Counts, TaskResult } from '../../core/task/task.ts'
import { only } from '../only.ts'
import type { Execution } from '../seams/executions.ts'
import type { TaskRecord } from '../seams/records/task.ts'

export function resultOf(execution: Execution): TaskResult {
  return {
    ...only(
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
    ...only(execution, 'stdoutBytes', 'stderrBytes', 'truncated', 'outputComplete', 'error'),
    containment: execution.containment ?? null,
    survivors: execution.survivors === undefined ? [] : execution.survivors,
    lateResult: execution.lateResult,
  }
}

/** A task as lists show it; `counts` of a running one are those of its executions. */
export function summaryOf(task: TaskRecord, counts: Counts): TaskSummary {
  return {
    taskId: task.id,
    ...only(task, 'status', 'hostCount'),
    counts: { ...counts },
    ...only(task, 'strategy', 'batchSize', 'scriptId', 'scriptVersion', 'scriptName'),
    firstLine: task.firstLine ?? null,
    ...only(task, 'type', 'params', 'timeout', 'runAs'),
    limits: task.limits ?? null,
    clusterId: task.clusterId,
    retryOf: task.retryOf ?? null,
    ...only(task, 'createdBy', 'createdAt', 'startedAt', 'completedAt', 'duration'),
  }
}
