import type { TokenService } from '../../core/services.ts'
import type { Api } from '../http/api.ts'

export function tokensOver(api: Api): TokenService {
  return {
    list: (query) => api.page('/api/tokens', query),
    create: (body) => api.call('POST', '/api/tokens', { body }),
    remove: (id) => api.call('DELETE', `/api/tokens/${id}`),
  }
}
