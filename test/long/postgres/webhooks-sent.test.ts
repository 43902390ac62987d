import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { ServerOptions } from '../../../src/server/app/options.ts'
import { webhooksOfTasksContract, webhooksSentContract } from '../../contracts/webhooks-sent.ts'
import { scrape } from '../../helpers/metrics/scrape.ts'
import { atExit, startPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { idsOf, startReceiver } from '../../helpers/servers/webhook-receiver.ts'
import { until } from '../../helpers/until.ts'

/** The tests of this file run their servers at the same time. */
const postgres = startPostgres(atExit, { max_connections: '400' })

/** Options that all servers of a new store share. */
async function sharedBy(t: ExecutionContext): Promise<Partial<ServerOptions>> {
  const keysDir = await mkdtemp(join(tmpdir(), 'rsm-keys-'))
  t.teardown(() => rm(keysDir, { recursive: true, force: true }))
  return { store: await (await postgres).database(), keysDir }
}

const start: typeof startTestServer = async (t, options) =>
  startTestServer(t, { ...options, ...(await sharedBy(t)), serverName: 'a' })
webhooksOfTasksContract(test, 'on PostgreSQL,', start)
webhooksSentContract(test, 'on PostgreSQL,', start)

test('one of two servers sends for a webhook; when it stops the other continues with the same id', async (t) => {
  t.timeout(110_000)
  const shared = { ...(await sharedBy(t)), webhooks: { insecure: true, allow: ['127.0.0.1'] } }
  const a = await startTestServer(t, { ...shared, serverName: 'a' })
  const b = await startTestServer(t, { ...shared, serverName: 'b' })
  const receiver = await startReceiver(t)
  receiver.answers(503)
  await b.data('POST', '/api/webhooks', { name: 'call', url: receiver.url, events: ['agent.revoked'] })
  const { hostId } = await b.enroll('web1')
  await b.data('DELETE', `/api/hosts/${hostId}/agent`)
  const counted = async (server: typeof a, outcome: string) =>
    (await scrape(server)).of(`rsm_webhook_deliveries_total{outcome="${outcome}"}`)
  await until(
    'two attempts were made',
    async () => (await counted(a, 'failed')) + (await counted(b, 'failed')) >= 2,
  )
  const ofA = await counted(a, 'failed')
  t.true(ofA === 0 || (await counted(b, 'failed')) === 0, 'one server owns the webhook')
  const [owner, other] = ofA > 0 ? [a, b] : [b, a]
  const servers = (await other.data('GET', '/api/servers')).content as { tasks: number }[]
  t.deepEqual(
    servers.map(({ tasks }) => tasks),
    [0, 0],
    'a webhook does not count as a task',
  )
  await owner.stop()
  receiver.answers(204)
  await until('the other server has delivered it', async () => (await counted(other, 'delivered')) === 1)
  t.is(new Set(idsOf(receiver.got)).size, 1)
})
