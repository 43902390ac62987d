import type { Readable } from 'node:stream'
import type { ServerInfo, ServerStatus } from '../../core/protocol/http/server.ts'
import type { Services, TerminalService } from '../../core/services.ts'
import type { UserCaller } from '../access/caller.ts'
import type { Events } from '../events/events.ts'
import type { AuditLog } from '../seams/audit-log.ts'
import type { AgentService } from '../services/agents.ts'
import type { Context } from '../services/context.ts'
import type { LoginService } from '../services/login.ts'
import type { NoteStarted } from '../services/tasks.ts'

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
  status(): Promise<ServerStatus>
  /** The text of `/metrics`. */
  scrape(): Promise<string>
  /** Whether it takes no token. */
  metricsOpen: boolean
}
