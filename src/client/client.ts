import type { WebSocket } from 'ws'
import type { Services } from '../core/services.ts'
import { Api } from './api.ts'
import { auditOver, type ClientAuditService } from './audit.ts'
import { type AuthService, authOver } from './auth.ts'
import { clustersOver } from './clusters.ts'
import { enrollmentsOver } from './enrollments.ts'
import { hostsOver } from './hosts.ts'
import { scriptsOver } from './scripts.ts'
import { type ClientTaskService, tasksOver } from './tasks.ts'
import { type ClientTerminalService, terminalsOver } from './terminals.ts'
import { tokensOver } from './tokens.ts'
import { type Endpoint, openTransport } from './transport.ts'
import { usersOver } from './users.ts'

/** The services of core/services.ts over HTTP, and the bare calls beneath them. */
export interface Client extends Services {
  readonly api: Api
  readonly audit: ClientAuditService
  readonly auth: AuthService
  readonly tasks: ClientTaskService
  readonly terminals: ClientTerminalService
  /** A WebSocket of the server at this path, query included, that speaks `protocol`; see socket.ts. */
  readonly socket: (path: string, protocol: string, signal?: AbortSignal) => Promise<WebSocket>
}

/** A client of one server; nothing is sent before its first call. */
export async function openClient(endpoint: Endpoint & { token?: string | undefined }): Promise<Client> {
  const api = new Api(endpoint.url, await openTransport(endpoint), endpoint.token)
  return {
    api,
    audit: auditOver(api),
    auth: authOver(api),
    hosts: hostsOver(api),
    scripts: scriptsOver(api),
    clusters: clustersOver(api),
    users: usersOver(api),
    tokens: tokensOver(api),
    enrollments: enrollmentsOver(api),
    tasks: tasksOver(api),
    terminals: terminalsOver(api),
    socket: async (...wanted) => (await import('./socket.ts')).openSocket(endpoint, api, ...wanted),
  }
}
