import type { HostService } from '../../core/services.ts'
import type { Api } from '../http/api.ts'

export function hostsOver(api: Api): HostService {
  return {
    list: (query) => api.page('/api/hosts', query),
    get: (id) => api.call('GET', `/api/hosts/${id}`),
    metrics: (id, query) => api.call('GET', `/api/hosts/${id}/metrics`, { query }),
    create: (body) => api.call('POST', '/api/hosts', { body }),
    update: (id, body) => api.call('PATCH', `/api/hosts/${id}`, { body }),
    revokeAgent: (id) => api.call('DELETE', `/api/hosts/${id}/agent`),
    remove: (id, options = {}) =>
      api.call('DELETE', `/api/hosts/${id}`, { query: options.force === true ? { force: true } : {} }),
  }
}
