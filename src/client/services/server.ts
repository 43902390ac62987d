import { RsmError } from '../../core/errors.ts'
import type { Page } from '../../core/protocol/http/common.ts'
import type { Server, ServerInfo, ServerStatus, Standing } from '../../core/protocol/http/server.ts'
import type { Api } from '../http/api.ts'

/** The server itself (contract §3). */
export interface ServerService {
  /** Null from older servers. */
  info(): Promise<ServerInfo | null>
  /** Null from older servers. */
  status(): Promise<ServerStatus | null>
  /** All servers of its store, including itself. Null from older servers. */
  servers(): Promise<Server[] | null>
  /** Why it accepts no work; null if it does. */
  notReady(): Promise<string | null>
  /** Answer of `/api/ready`, which needs no token. */
  readiness(): Promise<Readiness>
}

/** `server` is null if the store is not shared, and from older servers. */
export interface Readiness {
  readonly notReady: string | null
  readonly server: Pick<Standing, 'name' | 'leaseSeconds'> | null
}

/** Older servers give no reasons. */
function readinessOf({ data, message }: RsmError): Readiness {
  const { reasons, server }: { reasons?: unknown; server?: Standing | null } = data ?? {}
  return { notReady: Array.isArray(reasons) ? reasons.join('; ') : message, server: server ?? null }
}

export function serverOver(api: Api): ServerService {
  const ifKnown = <T>(path: string) =>
    api.call<T>('GET', path).catch((error: unknown) => {
      if (error instanceof RsmError && error.code === 'not_found') return null
      throw error
    })
  const readiness = () =>
    api.call<{ server?: Standing | null }>('GET', '/api/ready', { mayBeRefused: true }).then(
      ({ server = null }): Readiness => ({ notReady: null, server }),
      (error: unknown) => {
        if (error instanceof RsmError && error.code === 'unavailable') return readinessOf(error)
        throw error
      },
    )
  return {
    info: () => ifKnown<ServerInfo>('/api/server'),
    status: () => ifKnown<ServerStatus>('/api/server/status'),
    servers: async () => (await ifKnown<Page<Server>>('/api/servers?size=500'))?.content ?? null,
    notReady: async () => (await readiness()).notReady,
    readiness,
  }
}
