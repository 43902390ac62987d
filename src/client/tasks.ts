import type { TaskService } from '../core/services.ts'
import type { Api } from './api.ts'

/** With a key, an execution whose answer was lost is asked again: it starts once (contract §4). */
function keyed(key: string | undefined) {
  return key === undefined ? {} : { headers: { 'idempotency-key': key }, repeatable: true }
}

export function tasksOver(api: Api): TaskService {
  const path = (taskId: string) => `/api/tasks/${encodeURIComponent(taskId)}`
  return {
    list: (query) => api.call('GET', '/api/tasks', { query }),
    get: (taskId, query = {}) => api.call('GET', path(taskId), { query }),
    create: (body, key) => api.call('POST', '/api/tasks', { body, ...keyed(key) }),
    executeScript: (id, body, key) => api.call('POST', `/api/scripts/${id}/execute`, { body, ...keyed(key) }),
    executeCluster: (id, body, key) =>
      api.call('POST', `/api/clusters/${id}/execute`, { body, ...keyed(key) }),
    cancel: (taskId) => api.call('POST', `${path(taskId)}/cancel`),
    logs: (taskId, query) => api.call('GET', `${path(taskId)}/logs`, { query }),
  }
}
