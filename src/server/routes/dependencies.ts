import type { Server, ServerInfo, ServerStatus } from '../../core/protocol/http/server.ts'
import type { Credentials } from '../access/credentials.ts'
import type { Events } from '../events/events.ts'
import type { Context } from '../services/context.ts'
import type { ServerServices } from '../services/services.ts'
import type { BeginBackup } from '../storage/backup/backup.ts'
import type { Readiness } from '../storage/membership.ts'
import type { AuditLog } from '../storage/ports/audit-log.ts'

export interface RouteDependencies {
  services: ServerServices
  context: Context
  audit: Pick<AuditLog, 'list' | 'raw'>
  events: Events
  /** For routes that require no token but prefer callers with one. */
  credentials: Credentials
  readiness(): Readiness
  info(): ServerInfo
  status(): Promise<ServerStatus>
  /** All servers, for `GET /api/servers`. */
  servers(): Promise<Server[]>
  backup: BeginBackup
  scrape(): Promise<string>
  /** Whether `/metrics` requires no token. */
  metricsOpen: boolean
}
