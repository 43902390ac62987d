import type { Server, ServerInfo, ServerStatus } from '../../core/protocol/http/server.ts'
import type { Credentials } from '../access/credentials.ts'
import type { Events } from '../events/events.ts'
import type { Context } from '../services/context.ts'
import type { ServerServices } from '../services/services.ts'
import type { BeginBackup } from '../storage/backups.ts'
import type { AuditLog } from '../storage/ports/audit-log.ts'
import type { Readiness } from '../storage/servers/membership.ts'

/** What handlers call: each is one call on a service. */
export interface RouteDependencies {
  services: ServerServices
  context: Context
  audit: Pick<AuditLog, 'list' | 'raw'>
  events: Events
  /** For what needs no token and serves those who have one first. */
  credentials: Credentials
  readiness(): Readiness
  /** What `GET /api/server` says. */
  info(): ServerInfo
  /** What `GET /api/server/status` says. */
  status(): Promise<ServerStatus>
  /** What `GET /api/servers` says, all of it. */
  servers(): Promise<Server[]>
  backup: BeginBackup
  /** The text of `/metrics`. */
  scrape(): Promise<string>
  /** Whether it takes no token. */
  metricsOpen: boolean
}
