import type { Readable } from 'node:stream'
import type { ServerInfo, ServerStatus } from '../../core/protocol/http/server.ts'
import type { Services, TerminalService } from '../../core/services.ts'
import type { UserCaller } from '../access/caller.ts'
import type { Events } from '../events/events.ts'
import type { AppInstance } from '../http/app.ts'
import type { AuditLog } from '../seams/audit-log.ts'
import type { AgentService } from '../services/agents.ts'
import type { Context } from '../services/context.ts'
import type { LoginService } from '../services/login.ts'
import type { NoteStarted } from '../services/tasks.ts'
import { agentRoutes } from './agent.ts'
import { auditRoutes } from './audit.ts'
import { clusterRoutes } from './clusters.ts'
import { consoleRoutes } from './console.ts'
import { docsRoutes } from './docs.ts'
import { enrollmentRoutes } from './enrollments.ts'
import { eventRoutes } from './events.ts'
import { healthRoutes } from './health.ts'
import { hostRoutes } from './hosts.ts'
import { loginRoutes } from './login.ts'
import { metricsRoutes } from './metrics.ts'
import { openapiRoutes } from './openapi.ts'
import { scriptRoutes } from './scripts.ts'
import { serverRoutes } from './server.ts'
import { taskRoutes } from './tasks.ts'
import { terminalRoutes } from './terminals.ts'
import { tokenRoutes } from './tokens.ts'
import { userRoutes } from './users.ts'

/** What handlers call: each is one call on a service. */
export interface RouteDependencies {
  services: (caller: UserCaller, started?: NoteStarted) => Services
  terminals: (caller: UserCaller) => TerminalService
  /** The bytes of a session's recording; see services/terminals.ts for its errors. */
  recording: (caller: UserCaller, sessionId: string) => Promise<Readable>
  login: LoginService
  agents: AgentService
  context: Context
  audit: Pick<AuditLog, 'list' | 'raw'>
  events: Events
  /** Whether work is taken: 503 of /api/ready while starting, draining, or when the store refuses writes. */
  ready(): boolean
  /** What `GET /api/server` says. */
  info(): ServerInfo
  /** What `GET /api/server/status` says. */
  status(): ServerStatus
  /** The text of `/metrics`. */
  scrape(): Promise<string>
  /** Whether it takes no token. */
  metricsOpen: boolean
}

export function registerRoutes(app: AppInstance, deps: RouteDependencies): void {
  // First: it describes all operations that come after it.
  openapiRoutes(app)
  docsRoutes(app)
  consoleRoutes(app)
  healthRoutes(app, deps)
  serverRoutes(app, deps)
  metricsRoutes(app, deps)
  loginRoutes(app, deps)
  userRoutes(app, deps)
  tokenRoutes(app, deps)
  hostRoutes(app, deps)
  enrollmentRoutes(app, deps)
  scriptRoutes(app, deps)
  clusterRoutes(app, deps)
  taskRoutes(app, deps)
  terminalRoutes(app, deps)
  eventRoutes(app, deps)
  agentRoutes(app, deps)
  auditRoutes(app, deps)
}
