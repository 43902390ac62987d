import type { EnrollmentService } from '../../core/services.ts'
import type { Api } from '../http/api.ts'

export function enrollmentsOver(api: Api): EnrollmentService {
  return {
    list: (query) => api.page('/api/enrollment-tokens', query),
    create: (body) => api.call('POST', '/api/enrollment-tokens', { body }),
    remove: (id) => api.call('DELETE', `/api/enrollment-tokens/${id}`),
  }
}
