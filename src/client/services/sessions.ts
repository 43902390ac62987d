import type { SessionService } from '../../core/services.ts'
import type { Api } from '../http/api.ts'

export function sessionsOver(api: Api): SessionService {
  return {
    list: (query) => api.page('/api/auth/sessions', query),
    remove: (id) => api.call('DELETE', `/api/auth/sessions/${id}`),
    removeOthers: () => api.call('DELETE', '/api/auth/sessions'),
  }
}
