import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { ServerOptions } from '../../../src/server/app/options.ts'
import { fetchBound } from '../../../src/server/files/append-upload.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { sendBytes, sha256Of } from '../../helpers/clients/files.ts'
import { finished } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const capabilities = { files: true }

async function fetching(t: ExecutionContext, options: Partial<ServerOptions> = {}, body: object = {}) {
  const server = await startTestServer(t, options)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { capabilities })
  const { taskId } = await server.data('POST', '/api/tasks', {
    fetch: { path: '/var/log/%h.log', kind: 'FILE', follow: true },
    target: { hostIds: [identity.hostId] },
    ...body,
  })
  const order = await agent.next('FETCH_FILE')
  const put = (query: string, bytes?: Uint8Array, token = identity.token) =>
    sendBytes({ url: server.url, token }, 'PUT', `/api/agent/tasks/${taskId}/file?${query}`, bytes)
  const download = (range?: string) =>
    fetch(`${server.url}/api/tasks/${taskId}/files/${identity.hostId}`, {
      headers: { authorization: `Bearer ${server.token}`, ...(range !== undefined && { range }) },
    })
  return { server, identity, agent, taskId, order, put, download }
}

test('P57 a fetched file survives a cut and a restart, is verified, and is available once complete', async (t) => {
  const { server, identity, agent, taskId, order, put, download } = await fetching(t)
  t.like(order, {
    taskId,
    fetch: { path: '/var/log/web1.log', kind: 'FILE', follow: true, maxSize: 2 ** 31 },
  })
  t.truthy(order.signature)
  const bytes = randomBytes(250_000)
  t.deepEqual((await put('offset=0', bytes.subarray(0, 100_000))).data, { offset: 100_000 })
  const behind = await put('offset=0', bytes)
  t.is(behind.status, 409)
  t.deepEqual(behind.data, { offset: 100_000 })
  t.is((await download()).status, 404)
  await agent.cut()
  await server.restart()
  const again = await ScriptedAgent.link(server, identity, {
    capabilities,
    tasks: [{ taskId, state: 'RUNNING', lastSequence: -1 }],
  })
  t.deepEqual((await put('offset=100000', bytes.subarray(100_000, 200_000))).data, { offset: 200_000 })
  const end = `offset=200000&end=true&sha256=${sha256Of(bytes)}`
  t.deepEqual((await put(end, bytes.subarray(200_000))).data, { offset: 250_000 })
  // Repeats the request, as after a lost answer.
  t.deepEqual((await put(end, bytes.subarray(200_000))).data, { offset: 250_000 })
  again.complete(taskId, 0, { lastSequence: -1, error: 'it grew while it was read' })
  const ended = await finished(server, taskId)
  t.like(ended.results[0], { status: 'SUCCESS', error: 'it grew while it was read', changed: null })
  const whole = await download()
  t.is(whole.headers.get('content-type'), 'application/octet-stream')
  t.deepEqual(Buffer.from(await whole.arrayBuffer()), bytes)
  const part = await download('bytes=1000-1999')
  t.is(part.status, 206)
  t.deepEqual(Buffer.from(await part.arrayBuffer()), bytes.subarray(1000, 2000))
})

test('a host that reports SUCCESS without its complete file is FAILED, and the partial file is removed', async (t) => {
  const { server, agent, identity, taskId, put, download } = await fetching(t)
  await put('offset=0', randomBytes(100_000))
  const part = join(server.dataDir, 'files', `${taskId}-${identity.hostId}`)
  t.true(existsSync(part))
  agent.complete(taskId, 0, { lastSequence: -1 })
  const ended = await finished(server, taskId)
  t.is(ended.status, 'FAILED')
  t.like(ended.results[0], {
    status: 'FAILED',
    error: 'its agent reports SUCCESS, but has not sent the complete file',
  })
  t.is((await download()).status, 404)
  await until('the part is gone', () => !existsSync(part))
})

test('a host can send at most maxSize bytes, announced or not; many hosts share the limit', async (t) => {
  const fetch = { path: '/etc/hosts', kind: 'FILE', maxSize: 1000 }
  const { order, put, agent, taskId, server } = await fetching(t, {}, { fetch })
  t.is((order.fetch as { maxSize: number }).maxSize, 1000)
  t.is((await put('offset=0', randomBytes(1001))).status, 413)
  t.is((await put('offset=0', randomBytes(900))).status, 200)
  t.is((await put('offset=900', randomBytes(101))).status, 413)
  agent.complete(taskId, 1, { lastSequence: -1 })
  t.is((await finished(server, taskId)).status, 'FAILED')
  const shareOf = (hostCount: number) => fetchBound({ hostCount }, 1600)
  t.deepEqual([1, 16, 32, 1000].map(shareOf), [1600, 1600, 800, 25])
  t.is(fetchBound({ hostCount: 1000, fetch: { ...order.fetch, maxSize: 9999 } }, 1600), 1600)
})

test('P57 only the fetching host can send, during its execution, and bytes that do not match start over', async (t) => {
  const { server, agent, taskId, put, download } = await fetching(
    t,
    { maxFileSize: 1000 },
    { limitRate: 16_384 },
  )
  const other = await server.enroll('web2')
  t.is((await put('offset=0', Buffer.from('x'), other.token)).status, 404)
  t.is((await put('offset=0', Buffer.from('x'), server.token)).status, 403)
  t.is((await put('offset=0', randomBytes(1001))).status, 413)
  t.is((await put('offset=-1', Buffer.from('x'))).status, 400)
  t.is((await put(`offset=0&end=true&sha256=${sha256Of('other')}`, Buffer.from('x'))).status, 400)
  t.deepEqual((await put(`offset=0&end=true&sha256=${sha256Of('x')}`, Buffer.from('x'))).data, { offset: 1 })
  agent.complete(taskId, 0, { lastSequence: -1 })
  await finished(server, taskId)
  t.is((await put('offset=1', Buffer.from('x'))).status, 404)
  t.is(await (await download()).text(), 'x')
  t.is((await server.api('GET', `/api/tasks/${taskId}/files/99`)).status, 404)
  t.is((await server.api('GET', `/api/tasks/${taskId}/files/x`)).status, 404)
})

test('P57 a tree arrives as a tar, and a retry fetches again', async (t) => {
  const { server, agent, taskId, put, download } = await fetching(
    t,
    {},
    { fetch: { path: '/srv', kind: 'TREE' } },
  )
  const tar = randomBytes(1024)
  await put(`offset=0&end=true&sha256=${sha256Of(tar)}`, tar)
  t.is((await download()).headers.get('content-type'), 'application/x-tar')
  agent.complete(taskId, 1, { lastSequence: -1 })
  await finished(server, taskId)
  const { taskId: again } = await server.data('POST', `/api/tasks/${taskId}/retry`, {})
  const order = await agent.next('FETCH_FILE', (payload) => payload.taskId === again)
  t.like(order.fetch, { path: '/srv', kind: 'TREE' })
})
