import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { startCluster, clusterTest as test } from '../../helpers/cluster/cluster.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
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

/** The agents of a stopped server link to the other servers while it restarts, so it misses those changes. */
async function restarted(t: ExecutionContext, end: (server: ServerProcess) => Promise<unknown>) {
  const { servers, front, store } = await startCluster(t)
  const database = openDatabase(t, store)
  const names = ['web1', 'web2', 'web3', 'web4', 'web5', 'web6']
  for (const hostname of names) await realAgent(t, front, { hostname })
  const all = names.map((hostname) => ({ hostname, status: 'ONLINE', connected: true, reachable: true }))
  const allShown = async (server: ServerProcess) =>
    (await hostsOf(server)).every(({ connected }) => connected)
  for (const server of servers) await until('all agents are linked', () => allShown(server))
  // Longer than it takes to write their registrations.
  await delay(6_000)
  for (const server of servers) {
    const others = servers.filter((other) => other !== server)
    await end(server)
    // The other servers show its links until they notice its end.
    await until('all agents are linked to the others', async () => {
      const rows = await database.ask<{ epoch: number }>(
        'api',
        'select epoch from rsm.links where ready and server <> $1',
        [`server${servers.indexOf(server) + 1}`],
      )
      return rows.length === names.length
    })
    for (const other of others) await until('the other servers show the links', () => allShown(other))
    await server.start()
    t.is((await server.api('GET', '/api/ready')).status, 200)
    for (const each of servers)
      t.deepEqual(
        await hostsOf(each),
        all,
        `server ${servers.indexOf(each)} after the end of ${servers.indexOf(server)}`,
      )
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
