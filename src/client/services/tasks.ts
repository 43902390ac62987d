import { readFileSync } from 'node:fs'
import type { PageQuery } from '../../core/protocol/http/common.ts'
import type { TaskCreate, TaskRetry } from '../../core/protocol/http/tasks.ts'
import type { TaskService } from '../../core/services.ts'
import type { Api } from '../http/api.ts'

/** An abort of `signal` gives up the wait for the answer; the task may have started, or been cancelled. */
export interface ClientTaskService extends TaskService {
  get(taskId: string, query?: PageQuery, signal?: AbortSignal): ReturnType<TaskService['get']>
  cancel(taskId: string, signal?: AbortSignal): ReturnType<TaskService['cancel']>
  create(input: TaskCreate, idempotencyKey?: string, signal?: AbortSignal): ReturnType<TaskService['create']>
  retry(
    taskId: string,
    input: TaskRetry,
    idempotencyKey?: string,
    signal?: AbortSignal,
  ): ReturnType<TaskService['retry']>
}

export function tasksOver(api: Api): ClientTaskService {
  const path = (taskId: string) => `/api/tasks/${encodeURIComponent(taskId)}`
  return {
    list: (query) => api.page('/api/tasks', query),
    get: (taskId, query = {}, signal) =>
      api.call('GET', path(taskId), { query, signal, has: ['taskId', 'results', 'counts'] }),
    create: (body, key, signal) =>
      api.call('POST', '/api/tasks', { body, ...keyed(key), signal, has: ['taskId'] }),
    executeScript: (id, body, key) => api.call('POST', `/api/scripts/${id}/execute`, { body, ...keyed(key) }),
    executeCluster: (id, body, key) =>
      api.call('POST', `/api/clusters/${id}/execute`, { body, ...keyed(key) }),
    installAgent: (hostId, body, key) =>
      api.call('POST', `/api/hosts/${hostId}/install-agent`, { body, ...keyed(key), has: ['taskId'] }),
    cancel: (taskId, signal) => api.call('POST', `${path(taskId)}/cancel`, { signal }),
    retry: (taskId, body, key, signal) =>
      api.call('POST', `${path(taskId)}/retry`, { body, ...keyed(key), signal, has: ['taskId'] }),
    script: (taskId) => api.call('GET', `${path(taskId)}/script`),
    files: (taskId, query) => api.page(`${path(taskId)}/files`, query),
    logs: (taskId, query) => api.call('GET', `${path(taskId)}/logs`, { query, has: ['entries'] }),
  }
}

/** With a key, an execution whose answer was lost is asked again: it starts once (contract §4). */
function keyed(key: string | undefined) {
  return key === undefined ? {} : { headers: { 'idempotency-key': key }, repeatable: true }
}

/** A key that no other request has. From the kernel where it gives one: loading node:crypto takes a tenth of a start. */
export function newIdempotencyKey(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/uuid', 'utf8').trim()
  } catch {
    return process.getBuiltinModule('node:crypto').randomUUID()
  }
}
