import type { UserService } from '../../core/services.ts'
import type { Api } from '../http/api.ts'

export function usersOver(api: Api): UserService {
  return {
    list: (query) => api.page('/api/users', query),
    get: (id) => api.call('GET', `/api/users/${id}`),
    create: (body) => api.call('POST', '/api/users', { body }),
    update: (id, body) => api.call('PATCH', `/api/users/${id}`, { body }),
    remove: (id) => api.call('DELETE', `/api/users/${id}`),
  }
}
