import { RsmError } from '../../core/errors.ts'
import type { ScriptType } from '../../core/protocol/http/scripts.ts'
import type { ExecutionOptions } from '../../core/protocol/http/tasks.ts'
import type { UserCaller } from '../caller.ts'
import { opaqueId } from '../ids.ts'
import type { ExecutionRecord, TaskRecord } from '../store/records.ts'
import type { Context } from './context.ts'

/** What a user means by the same request, for 24 h (contract §4). */
export const idempotencyLife = 24 * 3600_000
const defaultMaxOutput = 64 * 1024 * 1024
const defaultBatchSize = '25%'

/** A task that is validated and resolved: what runs, where, how. */
export interface NewTask {
  scriptId: number | null
  scriptVersion: number | null
  scriptName: string | null
  type: ScriptType
  content: string
  timeout: number
  clusterId: number | null
  hostIds: readonly number[]
  options: ExecutionOptions
}

/** Makes a task durable and sets it going; the same idempotency key answers the first task. */
export function createStart(context: Context, caller: UserCaller) {
  const { store, engine, keys, clock } = context

  function taskRecord(id: string, task: NewTask): TaskRecord {
    const { options } = task
    const at = context.time()
    const secrets = Object.keys(options.secretParams ?? {}).length > 0
    const strategy = options.strategy ?? 'PARALLEL'
    return {
      id,
      status: 'RUNNING',
      hostCount: task.hostIds.length,
      counts: null,
      strategy,
      batchSize: strategy === 'ROLLING' ? (options.batchSize ?? defaultBatchSize) : null,
      concurrency: options.concurrency ?? null,
      maxFailures: options.maxFailures ?? null,
      pauseSeconds: options.pauseSeconds ?? 0,
      queueSeconds: options.queueSeconds ?? null,
      scriptId: task.scriptId,
      scriptVersion: task.scriptVersion,
      scriptName: task.scriptName,
      type: task.type,
      content: task.content,
      params: options.params ?? {},
      secretParams: secrets
        ? keys.seal(JSON.stringify(options.secretParams), `tasks/${id}/secretParams`)
        : null,
      timeout: task.timeout,
      workDir: options.workDir ?? null,
      runAs: options.runAs ?? null,
      maxOutputBytes: options.maxOutputBytes ?? defaultMaxOutput,
      clusterId: task.clusterId,
      createdBy: caller.username,
      createdById: caller.id,
      createdAt: at,
      startedAt: at,
      completedAt: null,
      duration: null,
      cancelRequestedAt: null,
      pauseUntil: null,
    }
  }

  async function executionRecords(taskId: string, hostIds: readonly number[]): Promise<ExecutionRecord[]> {
    const hosts = await Promise.all(hostIds.map((hostId) => store.get('hosts', hostId)))
    return hostIds.map((hostId, position) => ({
      id: `${taskId}/${hostId}`,
      taskId,
      hostId,
      hostname: hosts[position]?.hostname ?? String(hostId),
      position,
      status: 'PENDING',
      dueAt: null,
      sentAt: null,
      agentStoreId: null,
      named: false,
      cancelRequested: false,
      exitCode: null,
      signal: null,
      startedAt: null,
      completedAt: null,
      duration: null,
      stdoutBytes: 0,
      stderrBytes: 0,
      truncated: false,
      outputComplete: true,
      error: null,
      lateResult: null,
    }))
  }

  return async (task: NewTask, idempotency: { key: string; body: unknown } | null): Promise<TaskRecord> => {
    const record = taskRecord(opaqueId(clock.now()), task)
    const executions = await executionRecords(record.id, task.hostIds)
    const bodyHash = idempotency && keys.digest(JSON.stringify(idempotency.body))
    const earlier = await store.transact(async (tx) => {
      if (idempotency && bodyHash) {
        const id = `${caller.id}/${idempotency.key}`
        const known = await tx.get('idempotency', id)
        if (known && clock.now() - Date.parse(known.createdAt) < idempotencyLife) {
          if (known.bodyHash !== bodyHash)
            throw new RsmError(
              'conflict',
              'This Idempotency-Key was used for another request; take a new one',
            )
          return known.taskId
        }
        tx.put('idempotency', { id, bodyHash, taskId: record.id, createdAt: record.createdAt })
      }
      engine.put(tx, record, executions)
      return null
    })
    if (earlier === null) {
      engine.begin(record, executions)
      return record
    }
    const first = await store.get('tasks', earlier)
    if (!first) throw new RsmError('gone', `Task ${earlier} of this Idempotency-Key is gone`)
    return first
  }
}
