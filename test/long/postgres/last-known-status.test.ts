import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { type Cluster, startCluster, clusterTest as test } from '../../helpers/cluster/cluster.ts'
import type { ServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

/** Seconds. */
const heartbeatInterval = 4

const hostsOf = async (server: ServerProcess) =>
  (await server.data('GET', '/api/hosts?sort=hostname')).content.map(
    ({ hostname, status, statusReason }: any) => ({ hostname, status, statusReason }),
  )

/** Hosts whose agents stay disconnected, so that only their stored status is known. */
async function hosts({ servers }: Cluster) {
  const [a] = servers as [ServerProcess]
  await a.data('POST', '/api/hosts', { hostname: 'new', ip: '192.0.2.1' })
  await a.enroll('silent')
  await until('the host is silent', async () => (await hostsOf(a))[1].status === 'OFFLINE')
  const { agentId, token } = await a.enroll('sick')
  const says = { agentId, status: 'UNHEALTHY' }
  await a.api('POST', '/api/agent/heartbeat', says, { authorization: `Bearer ${token}` })
  // Changes are written every second.
  await delay(2_500)
}

async function kept(t: ExecutionContext, cluster: Cluster, lose: () => void) {
  const { servers } = cluster
  await hosts(cluster)
  for (const server of servers) await server.kill()
  lose()
  for (const server of servers) {
    await server.start()
    const [fresh, sick, silent] = await hostsOf(server)
    t.like(fresh, { hostname: 'new', status: 'OFFLINE', statusReason: 'never heard' })
    t.like(sick, { hostname: 'sick', status: 'WARNING', statusReason: 'the agent reports UNHEALTHY' })
    t.like(silent, { hostname: 'silent', status: 'OFFLINE' })
    t.regex(silent.statusReason, /^no heartbeat for/)
  }
  for (const server of servers)
    await until('three intervals pass', async () => (await hostsOf(server))[1].status === 'OFFLINE')
}

const options = { heartbeatInterval }

test.serial(
  'F23 after a crash of PostgreSQL and of all servers each server keeps the last known status for three intervals',
  async (t) => {
    t.timeout(120_000)
    const cluster = await startCluster(t, { options })
    await kept(t, cluster, () => {
      cluster.postgres.stop('immediate')
      cluster.postgres.start()
    })
  },
)

test.serial('F26 servers find the last known status on a promoted standby', async (t) => {
  t.timeout(120_000)
  const cluster = await startCluster(t, { options, standby: 'synchronous' })
  await kept(t, cluster, () => {
    cluster.postgres.stop('immediate')
    cluster.standby?.promote()
  })
})
