import type { Services } from '../../core/services.ts'
import type { UserCaller } from '../access/caller.ts'
import { createClusters } from './clusters.ts'
import type { Context } from './context.ts'
import { createEnrollments } from './enrollments.ts'
import { createHosts } from './hosts.ts'
import { createScripts } from './scripts.ts'
import { createTasks, type NoteStarted } from './tasks.ts'
import { createTokens } from './tokens.ts'
import { createUsers } from './users.ts'

/** The services of core/services.ts, on the store, for one caller whose right a route has checked. */
export function createServices(context: Context): (caller: UserCaller, started?: NoteStarted) => Services {
  const hosts = createHosts(context)
  const clusters = createClusters(context)
  return (caller, started) => ({
    hosts,
    clusters,
    users: createUsers(context, caller),
    scripts: createScripts(context, caller),
    tokens: createTokens(context, caller),
    enrollments: createEnrollments(context, caller),
    tasks: createTasks(context, caller, started),
  })
}
