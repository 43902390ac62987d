import {
  clusterCalls,
  enrollmentCalls,
  hostCalls,
  type Services,
  scheduleCalls,
  scriptCalls,
  sessionCalls,
  taskCalls,
  tokenCalls,
  userCalls,
  webhookCalls,
} from '../core/services.ts'
import type { OpenTerminalSocket } from '../net/attachment.ts'
import { type Connection, type Endpoint, openConnection } from '../net/connect.ts'
import type { Warn } from '../net/proxy.ts'
import { Api, type Retries, silentRetries } from './http/api.ts'
import { openTransport } from './http/transport.ts'
import { auditOver, type ClientAuditService } from './services/audit.ts'
import { type ClientFileService, filesOver } from './services/files.ts'
import {
  type AuthService,
  authOver,
  type ClientTaskService,
  type ClientTerminalService,
  type ServerService,
  serverOver,
  serviceOver,
  terminalsOver,
} from './services/requests.ts'

/** The services of core/services.ts over HTTP, and the underlying calls. */
export interface Client extends Services {
  readonly api: Api
  readonly audit: ClientAuditService
  readonly auth: AuthService
  readonly files: ClientFileService
  readonly server: ServerService
  readonly tasks: ClientTaskService
  readonly terminals: ClientTerminalService
  /** Opens sockets of a terminal session, to take part in it or only to watch. */
  readonly session: (sessionId: string, watch: boolean) => OpenTerminalSocket
  /** A client whose calls are all aborted by `signal`: they reject at once and leave no connection open. */
  readonly until: (signal: AbortSignal) => Client
}

/** A client of one server; sends nothing before its first call. Errors: as `openConnection`. */
export async function openClient({
  token,
  refused = silentRetries.refused,
  ...endpoint
}: Endpoint & {
  token?: string | undefined
  refused?: Retries['refused']
  warn?: Warn
}): Promise<Client> {
  const connection = openConnection(endpoint)
  return clientOver(
    connection,
    token,
    new Api(endpoint.url, openTransport(connection), token, undefined, { ...silentRetries, refused }),
  )
}

function clientOver(connection: Connection, token: string | undefined, api: Api): Client {
  return {
    api,
    audit: auditOver(api),
    auth: authOver(api),
    server: serverOver(api),
    hosts: serviceOver(api, hostCalls),
    scripts: serviceOver(api, scriptCalls),
    clusters: serviceOver(api, clusterCalls),
    users: serviceOver(api, userCalls),
    tokens: serviceOver(api, tokenCalls),
    sessions: serviceOver(api, sessionCalls),
    enrollments: serviceOver(api, enrollmentCalls),
    files: filesOver(api),
    tasks: serviceOver(api, taskCalls),
    webhooks: serviceOver(api, webhookCalls),
    schedules: serviceOver(api, scheduleCalls),
    terminals: terminalsOver(api),
    session: (sessionId, watch) => async (after, signal) => {
      const { terminalSockets } = await import('./terminal/socket.ts')
      return terminalSockets(connection, token, api, sessionId, watch)(after, signal)
    },
    until: (signal) => clientOver(connection, token, api.until(signal)),
  }
}
