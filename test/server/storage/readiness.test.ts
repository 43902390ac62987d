import { join } from 'node:path'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { startCutLink } from '../../helpers/faults/cut-link.ts'
import { ShiftedClock } from '../../helpers/faults/shifted-clock.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const started = sharedPostgres()

test('F23 a draining balancer reads 404 from a live server without PostgreSQL, even after the lease expired', async (t) => {
  const postgres = await started
  const store = await postgres.database()
  const way = await startCutLink(t, `http://127.0.0.1:${postgres.port}`)
  const clock = new ShiftedClock()
  const server = await startTestServer(t, {
    store: store.replace(`:${postgres.port}/`, `:${new URL(way.url).port}/`),
    keysDir: join(temporaryDirectory(t), 'keys'),
    serverName: 'a',
    clock,
  })
  const ask = async (query: string) => {
    const { status, headers, body } = await server.api('GET', `/api/ready${query}`)
    return { status, retryAfter: headers.get('retry-after'), ...body.data }
  }
  for (const query of ['', '?drain=true', '?drain=false'])
    t.like(await ask(query), { status: 'UP', server: { name: 'a' } }, query)
  t.is((await server.api('GET', '/api/ready?drain=perhaps')).status, 400)

  await way.close()
  await until('the server notices', async () => (await server.api('GET', '/api/ready')).status === 503)
  const reasons = ['PostgreSQL cannot be reached']
  t.like((await server.api('GET', '/api/ready?drain=true')).body, {
    code: 404,
    message: `The server does not accept work just now: ${reasons[0]}`,
    data: { status: 'DOWN', reasons, server: { name: 'a' } },
  })
  clock.forward(15)
  reasons.push('its lease expired: others may take over its tasks and links')
  t.like((await server.api('GET', '/api/ready?drain=true')).body, { code: 404, data: { reasons } })
  for (const query of ['', '?drain=false'])
    t.is((await server.api('GET', `/api/ready${query}`)).status, 503, query)
})
