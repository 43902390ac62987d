import { type AgentSettings, createAgents } from './agents.ts'
import { createClusters } from './clusters.ts'
import type { Context } from './context.ts'
import { createEnrollments } from './enrollments.ts'
import { createFileService } from './files.ts'
import { createHosts } from './hosts.ts'
import { createLogin } from './login.ts'
import { createSchedules } from './schedules.ts'
import { createScripts } from './scripts.ts'
import { createTasks } from './tasks.ts'
import { createTerminalService } from './terminals.ts'
import { createTotp } from './totp.ts'
import { createSessions, createTokens, createUsers } from './users.ts'
import { createWebhooks } from './webhooks.ts'

export type ServerServices = ReturnType<typeof createServices>

/** Implements core/services.ts on the store; routes have checked the caller's rights. */
export function createServices(context: Context, settings: AgentSettings) {
  return {
    hosts: createHosts(context),
    scripts: createScripts(context),
    clusters: createClusters(context),
    users: createUsers(context),
    tokens: createTokens(context),
    sessions: createSessions(context),
    enrollments: createEnrollments(context),
    tasks: createTasks(context),
    schedules: createSchedules(context),
    files: createFileService(context),
    terminals: createTerminalService(context),
    webhooks: createWebhooks(context),
    login: createLogin(context),
    totp: createTotp(context),
    agents: createAgents(context, settings),
  }
}
