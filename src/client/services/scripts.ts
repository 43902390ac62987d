import type { ScriptService } from '../../core/services.ts'
import type { Api } from '../http/api.ts'

export function scriptsOver(api: Api): ScriptService {
  return {
    list: (query) => api.page('/api/scripts', query),
    get: (id) => api.call('GET', `/api/scripts/${id}`),
    create: (body) => api.call('POST', '/api/scripts', { body }),
    update: (id, body) => api.call('PATCH', `/api/scripts/${id}`, { body }),
    versions: (id, query) => api.page(`/api/scripts/${id}/versions`, query),
    version: (id, version) => api.call('GET', `/api/scripts/${id}/versions/${version}`),
    remove: (id) => api.call('DELETE', `/api/scripts/${id}`),
  }
}
