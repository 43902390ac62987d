import type { WebhookService } from '../../core/services.ts'
import type { Api } from '../http/api.ts'

export function webhooksOver(api: Api): WebhookService {
  return {
    list: (query) => api.page('/api/webhooks', query),
    get: (id) => api.call('GET', `/api/webhooks/${id}`),
    create: (body) => api.call('POST', '/api/webhooks', { body }),
    update: (id, body) => api.call('PATCH', `/api/webhooks/${id}`, { body }),
    remove: (id) => api.call('DELETE', `/api/webhooks/${id}`),
    test: (id) => api.call('POST', `/api/webhooks/${id}/test`),
    deliveries: (id, query) => api.page(`/api/webhooks/${id}/deliveries`, query),
  }
}
