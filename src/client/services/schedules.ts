import type { ScheduleService } from '../../core/services.ts'
import type { Api } from '../http/api.ts'

export function schedulesOver(api: Api): ScheduleService {
  const path = (id: number) => `/api/schedules/${id}`
  return {
    list: (query) => api.page('/api/schedules', query),
    get: (id) => api.call('GET', path(id)),
    create: (body) => api.call('POST', '/api/schedules', { body }),
    update: (id, body) => api.call('PATCH', path(id), { body }),
    remove: (id) => api.call('DELETE', path(id)),
    run: (id) => api.call('POST', `${path(id)}/run`, { has: ['taskId'] }),
    next: (id, query) => api.call('GET', `${path(id)}/next`, { query, has: ['next'] }),
    history: (id, query) => api.page(`${path(id)}/history`, query),
  }
}
