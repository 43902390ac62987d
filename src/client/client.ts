import type { WebSocket } from 'ws'
import type { Services } from '../core/services.ts'
import { Api } from './http/api.ts'
import type { Endpoint } from './http/send.ts'
import { openTransport } from './http/transport.ts'
import { auditOver, type ClientAuditService } from './services/audit.ts'
import { type AuthService, authOver } from './services/auth.ts'
import { clustersOver } from './services/clusters.ts'
import { enrollmentsOver } from './services/enrollments.ts'
import { hostsOver } from './services/hosts.ts'
import { scriptsOver } from './services/scripts.ts'
import { type ServerService, serverOver } from './services/server.ts'
import { type ClientTaskService, tasksOver } from './services/tasks.ts'
import { type ClientTerminalService, terminalsOver } from './services/terminals.ts'
import { tokensOver } from './services/tokens.ts'
import { usersOver } from './services/users.ts'

/** The services of core/services.ts over HTTP, and the bare calls beneath them. */
export interface Client extends Services {
  readonly api: Api
  readonly audit: ClientAuditService
  readonly auth: AuthService
  readonly server: ServerService
  readonly tasks: ClientTaskService
  readonly terminals: ClientTerminalService
  /** A WebSocket of the server at this path, query included, that speaks `protocol`; see socket.ts. */
  readonly socket: (path: string, protocol: string, signal?: AbortSignal) => Promise<WebSocket>
  /** The same, whose calls are all given up when `signal` aborts: they reject at once and leave no connection open. */
  readonly until: (signal: AbortSignal) => Client
}

/** A client of one server; nothing is sent before its first call. */
export async function openClient(endpoint: Endpoint & { token?: string | undefined }): Promise<Client> {
  return clientOver(endpoint, new Api(endpoint.url, await openTransport(endpoint), endpoint.token))
}

function clientOver(endpoint: Endpoint & { token?: string | undefined }, api: Api): Client {
  return {
    api,
    audit: auditOver(api),
    auth: authOver(api),
    server: serverOver(api),
    hosts: hostsOver(api),
    scripts: scriptsOver(api),
    clusters: clustersOver(api),
    users: usersOver(api),
    tokens: tokensOver(api),
    enrollments: enrollmentsOver(api),
    tasks: tasksOver(api),
    terminals: terminalsOver(api),
    socket: async (...wanted) => (await import('./terminal/socket.ts')).openSocket(endpoint, api, ...wanted),
    until: (signal) => clientOver(endpoint, api.until(signal)),
  }
}
