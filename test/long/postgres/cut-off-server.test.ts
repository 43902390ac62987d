import { join } from 'node:path'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask, statusesOf } from '../../helpers/clients/tasks.ts'
import { startCutLink } from '../../helpers/faults/cut-link.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

test('F23 a server that is cut off from PostgreSQL alone sends nothing; its tasks and agents move to another server', async (t) => {
  t.timeout(180_000)
  const postgres = await sharedPostgres()
  const store = await postgres.database()
  const way = await startCutLink(t, `http://127.0.0.1:${postgres.port}`)
  const keysDir = join(temporaryDirectory(t), 'keys')
  const through = store.replace(`:${postgres.port}/`, `:${new URL(way.url).port}/`)
  const a = await startServerProcess(t, { options: { store: through, keysDir, serverName: 'a' } })
  const b = await startServerProcess(t, { options: { store, keysDir, serverName: 'b' } })
  const identities = [await a.enroll('web1'), await a.enroll('web2')] as const
  const first = await ScriptedAgent.link(b, identities[0])
  const second = await ScriptedAgent.link(a, identities[1])
  let sentByA = 0
  second.socket.on('message', (data: Buffer) => {
    if (JSON.parse(data.toString()).type === 'EXECUTE_SCRIPT') sentByA++
  })
  const hostIds = identities.map(({ hostId }) => hostId)
  const taskId = await startTask(a, hostIds, { strategy: 'SEQUENTIAL', queueSeconds: 3600 })
  await first.execution(taskId)

  way.freeze()
  const cutAt = performance.now()
  const seconds = () => Math.round((performance.now() - cutAt) / 1000)
  first.complete(taskId)
  await first.released(taskId)
  const turn = async () => {
    const { results } = await b.data('GET', `/api/tasks/${taskId}`)
    return results[1].error?.includes('not connected') === true
  }
  await until('the other server takes over the task', turn)
  t.log(`the task was taken over after ${seconds()} s`)
  t.is((await a.api('GET', '/api/ready')).status, 503)
  const { code } = await second.closed
  t.log(`the link was closed after ${seconds()} s`)
  t.is(code, 1013)
  t.is(sentByA, 0)
  const again = await ScriptedAgent.link(b, identities[1])
  await again.execution(taskId)

  way.thaw()
  await until('the server is ready again', async () => (await a.api('GET', '/api/ready')).status === 200)
  again.complete(taskId)
  t.deepEqual(statusesOf(await finished(a, taskId)), ['SUCCESS', 'SUCCESS'])
  const { content } = await a.data('GET', '/api/servers')
  t.deepEqual(
    content.map(({ name, faults }: { name: string; faults: string[] }) => ({ name, faults })),
    ['a', 'b'].map((name) => ({ name, faults: [] })),
  )
})
