import type { Readable } from 'node:stream'
import type { TerminalService } from '../../core/services.ts'
import type { Api } from '../http/api.ts'

export interface ClientTerminalService extends TerminalService {
  /** The asciicast of a session as it stands, from its beginning. `not_found` where there is none, or none any more. */
  recording(sessionId: string): Promise<Readable>
}

export function terminalsOver(api: Api): ClientTerminalService {
  const path = (sessionId: string) => `/api/terminals/${encodeURIComponent(sessionId)}`
  return {
    list: (query) => api.page('/api/terminals', query),
    get: (sessionId) => api.call('GET', path(sessionId)),
    create: (body) => api.call('POST', '/api/terminals', { body }),
    ticket: (sessionId, body) => api.call('POST', `${path(sessionId)}/ticket`, { body }),
    remove: (sessionId) => api.call('DELETE', path(sessionId)),
    recording: (sessionId) => api.download(`${path(sessionId)}/recording`, '*/*'),
  }
}
