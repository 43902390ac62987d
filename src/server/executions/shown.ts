import type { Counts, TaskResult, TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { Execution } from '../seams/executions.ts'
import type { TaskRecord } from '../seams/records.ts'

export function resultOf(execution: Execution): TaskResult {
  const { hostId, hostname, status, exitCode, signal, startedAt, completedAt, duration } = execution
  const { stdoutBytes, stderrBytes, truncated, outputComplete, error, lateResult } = execution
  return {
    hostId,
    hostname,
    status,
    exitCode,
    signal,
    startedAt,
    completedAt,
    duration,
    stdoutBytes,
    stderrBytes,
    truncated,
    outputComplete,
    error,
    containment: execution.containment ?? null,
    survivors: execution.survivors === undefined ? [] : execution.survivors,
    lateResult,
  }
}

/** A task as lists show it; `counts` of a running one are those of its executions. */
export function summaryOf(task: TaskRecord, counts: Counts): TaskSummary {
  return {
    taskId: task.id,
    status: task.status,
    hostCount: task.hostCount,
    counts: { ...counts },
    strategy: task.strategy,
    batchSize: task.batchSize,
    scriptId: task.scriptId,
    scriptVersion: task.scriptVersion,
    scriptName: task.scriptName,
    firstLine: task.firstLine ?? null,
    type: task.type,
    params: task.params,
    timeout: task.timeout,
    runAs: task.runAs,
    limits: task.limits ?? null,
    clusterId: task.clusterId,
    retryOf: task.retryOf ?? null,
    createdBy: task.createdBy,
    createdAt: task.createdAt,
    startedAt: task.startedAt,
    completedAt: task.completedAt,
    duration: task.duration,
  }
}
