import type { Services } from '../../core/services.ts'
import type { AppInstance } from '../app.ts'
import type { UserCaller } from '../caller.ts'
import type { AgentService } from '../services/agents.ts'
import type { Context } from '../services/context.ts'
import type { LoginService } from '../services/login.ts'
import { agentRoutes } from './agent.ts'
import { clusterRoutes } from './clusters.ts'
import { docsRoutes } from './docs.ts'
import { enrollmentRoutes } from './enrollments.ts'
import { healthRoutes } from './health.ts'
import { hostRoutes } from './hosts.ts'
import { loginRoutes } from './login.ts'
import { metricsRoutes } from './metrics.ts'
import { openapiRoutes } from './openapi.ts'
import { scriptRoutes } from './scripts.ts'
import { taskRoutes } from './tasks.ts'
import { tokenRoutes } from './tokens.ts'
import { userRoutes } from './users.ts'

/** What handlers call: each is one call on a service. */
export interface RouteDependencies {
  services: (caller: UserCaller) => Services
  login: LoginService
  agents: AgentService
  context: Context
  /** Whether work is taken: 503 of /api/ready while starting, draining, or when the store refuses writes. */
  ready(): boolean
  /** The text of `/metrics`. */
  scrape(): Promise<string>
  /** Whether it takes no token. */
  metricsOpen: boolean
}

export function registerRoutes(app: AppInstance, deps: RouteDependencies): void {
  // First: it describes all operations that come after it.
  openapiRoutes(app)
  docsRoutes(app)
  healthRoutes(app, deps)
  metricsRoutes(app, deps)
  loginRoutes(app, deps)
  userRoutes(app, deps)
  tokenRoutes(app, deps)
  hostRoutes(app, deps)
  enrollmentRoutes(app, deps)
  scriptRoutes(app, deps)
  clusterRoutes(app, deps)
  taskRoutes(app, deps)
  agentRoutes(app, deps)
}
