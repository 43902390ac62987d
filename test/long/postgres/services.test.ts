import { clustersContract } from '../../contracts/clusters.ts'
import { hostFactsContract } from '../../contracts/host-facts.ts'
import { hostsContract } from '../../contracts/hosts.ts'
import { schedulesContract } from '../../contracts/schedules.ts'
import { scriptsContract } from '../../contracts/scripts.ts'
import type { ServicesOf } from '../../contracts/services-of.ts'
import { sessionsContract } from '../../contracts/sessions.ts'
import { tasksContract } from '../../contracts/tasks.ts'
import { tokensContract } from '../../contracts/tokens.ts'
import { usersContract } from '../../contracts/users.ts'
import { webhooksContract } from '../../contracts/webhooks.ts'
import { postgresGround } from '../../helpers/servers/grounds.ts'
import { atExit, startPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { startInsides } from '../../helpers/servers/services.ts'

/** The tests of this file run their servers at the same time. */
const ground = postgresGround(startPostgres(atExit, { max_connections: '400' }))
const open: ServicesOf = async (t) => (await startInsides(t, ground)).services

for (const contract of [
  clustersContract,
  hostsContract,
  schedulesContract,
  scriptsContract,
  tasksContract,
  sessionsContract,
  tokensContract,
  usersContract,
  webhooksContract,
])
  contract(test, 'on PostgreSQL,', open)

hostFactsContract(test, 'on PostgreSQL,', (t) => startInsides(t, ground))
