import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { openJsonStore } from '../../../src/server/storage/files/store/store.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { entries, finished, startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

/** A stopped server that has run a task, and whose next start cleans up at once. */
async function used(t: ExecutionContext) {
  const server = await startTestServer(t, { firstSweepAfter: 0 })
  const agent = await realAgent(t, server)
  const taskId = await startTask(server, [agent.hostId], { script: { content: 'echo kept' } })
  await finished(server, taskId)
  await agent.stop()
  await server.stop()
  const at = (name: string) => join(server.dataDir, name)
  return {
    server,
    taskId,
    at,
    text: async () => (await entries(server, taskId)).map(({ data }) => data).join(''),
  }
}

const missing = {
  code: 'unavailable',
  message:
    /the store is missing: there is no .*store\/store\.json, but .* in .* shows that this data directory was used/,
}

test('A04 a used data directory does not start without its store, and works again once it is back', async (t) => {
  const { server, taskId, at, text } = await used(t)
  await rename(at('store'), at('elsewhere'))
  await t.throwsAsync(server.restart(), missing)
  await mkdir(at('store'), { mode: 0o700 })
  await t.throwsAsync(server.restart(), missing)
  t.deepEqual(await readdir(at('store')), [])
  t.deepEqual(await readdir(at('tasks')), [taskId])
  await rm(at('store'), { recursive: true })
  await rename(at('elsewhere'), at('store'))
  await server.restart()
  t.is(await text(), 'kept\n')
})

for (const sign of ['used', 'tasks', 'audit'])
  test(`A04 ${sign} alone marks a data directory as used`, async (t) => {
    const { server, at } = await used(t)
    for (const name of await readdir(server.dataDir))
      if (name !== sign) await rm(at(name), { recursive: true })
    await t.throwsAsync(server.restart(), missing)
    t.deepEqual((await readdir(server.dataDir)).toSorted(), ['lock', sign].toSorted())
  })

test('A04 the first start of this version marks a directory used by an older version', async (t) => {
  const { server, at } = await used(t)
  await rm(at('used'))
  await server.restart()
  const { storeId } = JSON.parse(await readFile(at('store/store.json'), 'utf8')) as { storeId: string }
  t.is(await readFile(at('used'), 'utf8'), `${storeId}\n`)
})

test('A04 a first start that failed before its first user can be repeated', async (t) => {
  const dataDir = await temporaryDirectory(t)
  await t.throwsAsync(startTestServer(t, { dataDir, adminPassword: 'short' }), { code: 'usage' })
  t.true((await readdir(dataDir)).includes('keys'))
  await rm(join(dataDir, 'store'), { recursive: true })
  const server = await startTestServer(t, { dataDir })
  t.is((await server.data('GET', '/api/users')).content.length, 1)
})

test('A04 a store older than its output does not delete the output', async (t) => {
  const { server, taskId, at } = await used(t)
  await rm(at('store'), { recursive: true })
  await (await openJsonStore({ directory: at('store') })).close()
  await server.restart()
  const aside = at('tasks/orphaned')
  await until('the first sweep', async () => (await readdir(at('tasks'))).includes('orphaned'))
  const [folder = ''] = await readdir(aside)
  t.deepEqual(await readdir(join(aside, folder)), [taskId])
  t.regex(await readFile(join(aside, folder, taskId, 'output.log'), 'utf8'), /kept/)
})

test('A06 a write after the journal of a running server is deleted is refused, while reads continue', async (t) => {
  const server = await startTestServer(t)
  const { hostId } = await server.enroll('web1')
  const store = join(server.dataDir, 'store')
  for (const name of await readdir(store)) if (name.startsWith('journal')) await rm(join(store, name))
  for (const hostname of ['web2', 'web3']) {
    const answer = await server.api('POST', '/api/hosts', { hostname, ip: '10.0.0.2' })
    t.is(answer.status, 503)
    t.regex(
      answer.body.message,
      /journal-0+1\.jsonl was deleted under the running server: nothing can be written/,
    )
  }
  t.is((await server.data('GET', `/api/hosts/${hostId}`)).hostname, 'web1')
  const { status, body } = await server.api('GET', '/api/ready')
  t.is(status, 503)
  t.deepEqual(body.data, { status: 'DOWN', reasons: ['its store refuses writes'], server: null })
})
