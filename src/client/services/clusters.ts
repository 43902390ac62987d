import type { ClusterService } from '../../core/services.ts'
import type { Api } from '../http/api.ts'

export function clustersOver(api: Api): ClusterService {
  return {
    list: (query) => api.page('/api/clusters', query),
    get: (id) => api.call('GET', `/api/clusters/${id}`),
    create: (body) => api.call('POST', '/api/clusters', { body }),
    update: (id, body) => api.call('PATCH', `/api/clusters/${id}`, { body }),
    remove: (id) => api.call('DELETE', `/api/clusters/${id}`),
  }
}
