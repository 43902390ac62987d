import test, { type ExecutionContext } from 'ava'
import { openClient } from '../../src/client/client.ts'
import type { Services } from '../../src/core/services.ts'
import { clustersContract } from '../contracts/clusters.ts'
import { hostsContract } from '../contracts/hosts.ts'
import { schedulesContract } from '../contracts/schedules.ts'
import { scriptsContract } from '../contracts/scripts.ts'
import { sessionsContract } from '../contracts/sessions.ts'
import { tasksContract } from '../contracts/tasks.ts'
import { tokensContract } from '../contracts/tokens.ts'
import { usersContract } from '../contracts/users.ts'
import { webhooksContract } from '../contracts/webhooks.ts'
import { startTestServer } from '../helpers/servers/server.ts'

/** Services of the client on a real server with the file store. */
async function servicesOverHttp(t: ExecutionContext): Promise<Services> {
  const { url, token } = await startTestServer(t)
  return openClient({ url, token })
}

const contracts = [
  hostsContract,
  schedulesContract,
  scriptsContract,
  clustersContract,
  usersContract,
  sessionsContract,
  tokensContract,
  tasksContract,
  webhooksContract,
]
for (const contract of contracts) contract(test, 'over HTTP,', servicesOverHttp)
