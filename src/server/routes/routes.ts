import type { AppInstance } from '../http/app.ts'
import { agentRoutes } from './agent.ts'
import { auditRoutes } from './audit.ts'
import { clusterRoutes } from './clusters.ts'
import type { RouteDependencies } from './dependencies.ts'
import { eventRoutes } from './events.ts'
import { fileRoutes } from './files.ts'
import { enrollmentRoutes, hostRoutes } from './hosts.ts'
import { installRoutes } from './install.ts'
import { loginRoutes, totpRoutes } from './login.ts'
import { consoleRoutes, docsRoutes, openapiRoutes } from './pages.ts'
import { scheduleRoutes } from './schedules.ts'
import { scriptRoutes } from './scripts.ts'
import { healthRoutes, metricsRoutes, serverRoutes } from './server.ts'
import { taskRoutes } from './tasks.ts'
import { terminalRoutes } from './terminals.ts'
import { sessionRoutes, tokenRoutes, userRoutes } from './users.ts'
import { webhookRoutes } from './webhooks.ts'

export function registerRoutes(app: AppInstance, deps: RouteDependencies): void {
  // First, because it describes the operations registered after it.
  openapiRoutes(app)
  docsRoutes(app)
  consoleRoutes(app)
  healthRoutes(app, deps)
  installRoutes(app, deps)
  serverRoutes(app, deps)
  metricsRoutes(app, deps)
  loginRoutes(app, deps)
  sessionRoutes(app, deps)
  totpRoutes(app, deps)
  userRoutes(app, deps)
  tokenRoutes(app, deps)
  hostRoutes(app, deps)
  enrollmentRoutes(app, deps)
  scriptRoutes(app, deps)
  clusterRoutes(app, deps)
  taskRoutes(app, deps)
  scheduleRoutes(app, deps)
  fileRoutes(app, deps)
  terminalRoutes(app, deps)
  eventRoutes(app, deps)
  agentRoutes(app, deps)
  webhookRoutes(app, deps)
  auditRoutes(app, deps)
}
