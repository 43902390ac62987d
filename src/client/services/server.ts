import { RsmError } from '../../core/errors.ts'
import type { Page } from '../../core/protocol/http/common.ts'
import type { ServerInfo, ServerStatus } from '../../core/protocol/http/server.ts'
import type { Server } from '../../core/protocol/http/servers.ts'
import type { Api } from '../http/api.ts'

/** The server itself (contract §3). */
export interface ServerService {
  /** Null from a server that is too old to say. */
  info(): Promise<ServerInfo | null>
  /** Null from a server that is too old to say. */
  status(): Promise<ServerStatus | null>
  /** Those of its store, itself among them. Null from a server that is too old to say. */
  servers(): Promise<Server[] | null>
  /** Why it takes no work; null if it does. */
  notReady(): Promise<string | null>
}

/** Older servers give none. */
function reasonsOf({ data, message }: RsmError): string {
  const { reasons }: { reasons?: unknown } = data ?? {}
  return Array.isArray(reasons) ? reasons.join('; ') : message
}

export function serverOver(api: Api): ServerService {
  const ifKnown = <T>(path: string) =>
    api.call<T>('GET', path).catch((error: unknown) => {
      if (error instanceof RsmError && error.code === 'not_found') return null
      throw error
    })
  return {
    info: () => ifKnown<ServerInfo>('/api/server'),
    status: () => ifKnown<ServerStatus>('/api/server/status'),
    servers: async () => (await ifKnown<Page<Server>>('/api/servers?size=500'))?.content ?? null,
    notReady: () =>
      api.call('GET', '/api/ready').then(
        () => null,
        (error: unknown) => {
          if (error instanceof RsmError && error.code === 'unavailable') return reasonsOf(error)
          throw error
        },
      ),
  }
}
