import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { startCluster, clusterTest as test } from '../../helpers/cluster/cluster.ts'
import type { ServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

interface Shown {
  hostname: string
  status: string
  connected: boolean
  reachable: boolean
}

async function hostsOf(server: ServerProcess): Promise<Shown[]> {
  const { content } = await server.data('GET', '/api/hosts?size=100&sort=hostname')
  return content.map(({ hostname, status, agent }: any) => {
    const { connected, reachable } = agent
    return { hostname, status, connected, reachable }
  })
}

const reachable = async (server: ServerProcess): Promise<number> =>
  (await server.data('GET', '/api/hosts?selector=@reachable')).totalElements

/** The agents of a server that ends link to the others while it starts: what they tell, it can not hear. */
async function restarted(t: ExecutionContext, end: (server: ServerProcess) => Promise<unknown>) {
  const { servers, front } = await startCluster(t)
  const names = ['web1', 'web2', 'web3', 'web4', 'web5', 'web6']
  for (const hostname of names) await realAgent(t, front, { hostname })
  const all = names.map((hostname) => ({ hostname, status: 'ONLINE', connected: true, reachable: true }))
  const allShown = async (server: ServerProcess) =>
    (await hostsOf(server)).every(({ connected }) => connected)
  for (const server of servers) await until('all agents are linked', () => allShown(server))
  // Their registrations are written within five seconds.
  await delay(6_000)
  for (const server of servers) {
    const others = servers.filter((other) => other !== server)
    await end(server)
    for (const other of others) await until('all agents are linked again', () => allShown(other))
    await server.start()
    t.is((await server.api('GET', '/api/ready')).status, 200)
    for (const each of servers) t.deepEqual(await hostsOf(each), all)
    for (const each of servers) t.is(await reachable(each), names.length)
  }
}

test.serial(
  'F27 each server shows the same hosts as the others once it is ready after a restart',
  async (t) => {
    t.timeout(180_000)
    await restarted(t, (server) => server.terminate())
  },
)

test.serial(
  'F22 each server shows the same hosts as the others once it is ready after kill -9',
  async (t) => {
    t.timeout(180_000)
    await restarted(t, (server) => server.kill())
  },
)
