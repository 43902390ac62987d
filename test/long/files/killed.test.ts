import { randomBytes } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { agentReads, sendBytes, sha256Of, upload } from '../../helpers/clients/files.ts'
import { finished } from '../../helpers/clients/tasks.ts'
import { scrape } from '../../helpers/metrics/scrape.ts'
import { type ServerProcess, startServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

const capabilities = { files: true }

/** A body that sends these bytes and then nothing until its connection ends. */
function stalled(bytes: Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(bytes) })
}

/** Starts to send, kills the server once a part is stored, and starts it again. */
async function cut(server: ServerProcess, send: () => Promise<unknown>, hasCome: () => Promise<boolean>) {
  const sending = send().catch(() => undefined)
  await until('a part is stored', hasCome)
  await server.kill()
  await sending
  await server.start()
}

for (const secret of [false, true])
  test(`an upload survives kill -9 of the server at every quarter and is complete${secret ? ', sealed as well' : ''}`, async (t) => {
    const server = await startServerProcess(t)
    const bytes = randomBytes(4_000_000)
    const { data } = await sendBytes(server, 'POST', `/api/files?size=${bytes.length}&secret=${secret}`)
    const path = `/api/files/${data.fileId}`
    const offset = async () => (await server.data('GET', path)).offset as number
    const stored = join(server.dataDir, 'files', data.fileId)
    const size = async () => (await stat(stored).catch(() => null))?.size ?? 0
    for (const quarter of [1, 2, 3]) {
      const [at, before] = [await offset(), await size()]
      const part = bytes.subarray(at, quarter * 1_000_000)
      await cut(
        server,
        () => sendBytes(server, 'PUT', `${path}?offset=${at}`, stalled(part)),
        async () => (await size()) > before + 131_072,
      )
      t.true((await offset()) > at)
    }
    const at = await offset()
    const ended = await sendBytes(server, 'PUT', `${path}?offset=${at}`, bytes.subarray(at))
    t.like(ended.data, { isComplete: true, sha256: sha256Of(bytes) })
  })

test('P54 an agent resumes a download cut by kill -9 of the server, at the rate of its task, and it is complete', async (t) => {
  const server = await startServerProcess(t)
  const identity = await server.enroll('web1')
  await ScriptedAgent.link(server, identity, { capabilities })
  const bytes = randomBytes(200_000)
  const { fileId } = await upload(server, bytes)
  const { taskId } = await server.data('POST', '/api/tasks', {
    copy: { fileId, path: '/srv/f', kind: 'FILE' },
    limitRate: 50_000,
    target: { hostIds: [identity.hostId] },
  })
  await until(
    'the order is sent',
    async () => (await agentReads(server, identity, fileId, 'bytes=0-0')).status === 206,
  )
  const headers = { authorization: `Bearer ${identity.token}` }
  const got: Uint8Array[] = []
  const size = () => got.reduce((sum, piece) => sum + piece.length, 0)
  const response = await fetch(`${server.url}/api/agent/files/${fileId}`, { headers })
  const reading = (async () => {
    for await (const piece of response.body ?? []) got.push(piece)
  })()
  await until('a part has arrived', () => size() > 30_000)
  await server.kill()
  await t.throwsAsync(reading)
  t.true(size() < bytes.length)
  await server.start()
  const again = await ScriptedAgent.link(server, identity, {
    capabilities,
    tasks: [{ taskId, state: 'RUNNING', lastSequence: -1 }],
  })
  const rest = await agentReads(server, identity, fileId, `bytes=${size()}-`)
  t.is(rest.status, 206)
  t.deepEqual(Buffer.concat([...got, rest.bytes]), bytes)
  again.complete(taskId, 0, { changed: true, lastSequence: -1 })
  t.is((await finished(server, taskId)).results[0]?.changed, true)
  t.true((await scrape(server)).of('rsm_file_bytes_total{direction="out"}') >= rest.bytes.length)
})

test('P57 a file sent by a host resumes after kill -9 of the server', async (t) => {
  const server = await startServerProcess(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { capabilities })
  const { taskId } = await server.data('POST', '/api/tasks', {
    fetch: { path: '/var/log/syslog', kind: 'FILE' },
    target: { hostIds: [identity.hostId] },
  })
  await agent.next('FETCH_FILE')
  const bytes = randomBytes(1_500_000)
  const of = { url: server.url, token: identity.token }
  const put = (query: string, body?: Uint8Array | ReadableStream<Uint8Array>) =>
    sendBytes(of, 'PUT', `/api/agent/tasks/${taskId}/file?${query}`, body)
  /** The response to a wrong offset contains the right one. */
  const offset = async () => (await put('offset=9999999')).data?.offset as number
  const stored = join(server.dataDir, 'files', `${taskId}-${identity.hostId}`)
  const hasCome = async () => ((await stat(stored).catch(() => null))?.size ?? 0) > 0
  await cut(server, () => put('offset=0', stalled(bytes.subarray(0, 500_000))), hasCome)
  const again = await ScriptedAgent.link(server, identity, {
    capabilities,
    tasks: [{ taskId, state: 'RUNNING', lastSequence: -1 }],
  })
  const at = await offset()
  t.true(at > 0 && at <= 500_000)
  const end = await put(`offset=${at}&end=true&sha256=${sha256Of(bytes)}`, bytes.subarray(at))
  t.deepEqual(end.data, { offset: bytes.length })
  again.complete(taskId, 0, { lastSequence: -1 })
  await finished(server, taskId)
  const headers = { authorization: `Bearer ${server.token}` }
  const download = await fetch(`${server.url}/api/tasks/${taskId}/files/${identity.hostId}`, { headers })
  t.deepEqual(Buffer.from(await download.arrayBuffer()), bytes)
})
