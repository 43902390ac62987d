import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { startTask } from '../../helpers/clients/tasks.ts'
import { startCutLink } from '../../helpers/faults/cut-link.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

/** Milliseconds: longer than the timeout for a response of PostgreSQL. */
const away = 16_000

test('F23 the log reports once that PostgreSQL does not respond, and once that it does again', async (t) => {
  const postgres = await sharedPostgres()
  const store = await postgres.database()
  const way = await startCutLink(t, `http://127.0.0.1:${postgres.port}`)
  const through = store.replace(`:${postgres.port}/`, `:${new URL(way.url).port}/`)
  const server = await startServerProcess(t, {
    logLevel: 'INFO',
    options: { store: through, serverName: 'a', keysDir: join(temporaryDirectory(t), 'keys') },
  })
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  const before = server.logged().length
  const said = () =>
    server
      .logged()
      .slice(before)
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
      .filter(({ msg }) => msg !== 'request')
  way.freeze()
  const frozenAt = performance.now()
  for (let sequence = 0; performance.now() - frozenAt < away; sequence++) {
    agent.output(taskId, sequence, 'line\n')
    void server.api('GET', '/api/tasks').catch(() => undefined)
    await delay(500)
  }
  way.thaw()
  await until('the server is ready again', async () => (await server.api('GET', '/api/ready')).status === 200)
  await until('the end of the outage is logged', () =>
    said().some(({ msg }) => msg === 'the store is reachable again'),
  )
  // Earlier requests end after that.
  await delay(3000)
  const counts = new Map<string, number>()
  for (const { msg } of said()) counts.set(msg, (counts.get(msg) ?? 0) + 1)
  t.like(Object.fromEntries(counts), {
    'the store cannot be reached': 1,
    'the store is reachable again': 1,
    'the lease of this server cannot be renewed; trying again': 1,
    'the lease of this server is renewed again': 1,
  })
  t.deepEqual(
    [...counts].filter(([, count]) => count > 1),
    [],
  )
  const errors = said().filter(({ level }) => level >= 50)
  t.deepEqual(
    errors.map(({ msg }) => msg),
    ['the store cannot be reached'],
  )
})
