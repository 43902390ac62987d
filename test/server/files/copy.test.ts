import { randomBytes } from 'node:crypto'
import { readdir, readFile, readlink, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { agentReads, sha256Of, upload } from '../../helpers/clients/files.ts'
import { finished, task } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

async function site(t: ExecutionContext, hostname = 'web1') {
  const server = await startTestServer(t)
  const identity = await server.enroll(hostname)
  const agent = await ScriptedAgent.link(server, identity, { capabilities: { files: true } })
  return { server, identity, agent, target: { hostIds: [identity.hostId] } }
}

test('P54 a copy is sent signed, with the file and all options, and its end reports whether it changed anything', async (t) => {
  const { server, identity, agent, target } = await site(t)
  const { fileId } = await upload(server, 'content\n')
  const copy = {
    fileId,
    path: '/etc/app/%h-100%%.conf',
    kind: 'FILE',
    mode: '0640',
    owner: 'app',
    group: '33',
    backup: true,
  }
  const { taskId } = await server.data('POST', '/api/tasks', { copy, target, runAs: 'deploy', timeout: 60 })
  const order = await agent.next('COPY_FILE')
  const file = { fileId, size: 8, sha256: sha256Of('content\n') }
  const { fileId: _, ...how } = copy
  t.like(order, {
    taskId,
    timeout: 60,
    runAs: 'deploy',
    copy: { ...how, file, path: '/etc/app/web1-100%.conf' },
  })
  for (const field of ['signature', 'keyId', 'expiry', 'mark'] as const) t.truthy(order[field])
  const read = await agentReads(server, identity, fileId)
  t.is(read.status, 200)
  t.is(read.bytes.toString(), 'content\n')
  agent.complete(taskId, 0, { changed: true, lastSequence: -1 })
  const ended = await finished(server, taskId)
  t.is(ended.results[0]?.changed, true)
  t.like(await task(server, taskId), {
    type: 'COPY',
    status: 'SUCCESS',
    copy: { ...how, file },
    fetch: null,
    firstLine: 'copy to /etc/app/%h-100%%.conf',
  })
  t.is((await server.api('GET', `/api/tasks/${taskId}/script`)).status, 404)
})

test('P54 only an agent with an open execution that names the file can read it, in any range', async (t) => {
  const { server, identity, agent, target } = await site(t)
  const other = await server.enroll('web2')
  const bytes = randomBytes(300_000)
  const { fileId } = await upload(server, bytes)
  const { fileId: unnamed } = await upload(server, 'other')
  t.is((await agentReads(server, identity, fileId)).status, 404)
  const { taskId } = await server.data('POST', '/api/tasks', {
    copy: { fileId, path: '/srv/f', kind: 'FILE' },
    target,
  })
  await agent.next('COPY_FILE')
  for (const [range, status, expected] of [
    [undefined, 200, bytes],
    ['bytes=0-99', 206, bytes.subarray(0, 100)],
    ['bytes=65535-131073', 206, bytes.subarray(65_535, 131_074)],
    ['bytes=299999-', 206, bytes.subarray(299_999)],
    ['bytes=-5', 206, bytes.subarray(-5)],
    ['bytes=300000-', 416, Buffer.alloc(0)],
  ] as const) {
    const read = await agentReads(server, identity, fileId, range)
    t.is(read.status, status, range)
    t.deepEqual(read.bytes, Buffer.from(expected), range)
  }
  t.is((await agentReads(server, other, fileId)).status, 404)
  t.is((await agentReads(server, identity, unnamed)).status, 404)
  t.is((await agentReads(server, identity, 'none')).status, 404)
  t.is((await agentReads(server, { token: server.token }, fileId)).status, 403)
  agent.complete(taskId, 0, { changed: false, lastSequence: -1 })
  await finished(server, taskId)
  t.is((await agentReads(server, identity, fileId)).status, 404)
})

test('P54 an agent without file support in its HELLO is sent nothing, and its result says so', async (t) => {
  const server = await startTestServer(t)
  const { fileId } = await upload(server, 'x')
  const identities = [await server.enroll('old'), await server.enroll('base')]
  const agents = [
    await ScriptedAgent.link(server, identities[0]!),
    await ScriptedAgent.link(server, identities[1]!, { storeId: null }),
  ]
  const target = { hostIds: identities.map(({ hostId }) => hostId) }
  for (const body of [
    { copy: { fileId, path: '/srv/f', kind: 'FILE' } },
    { fetch: { path: '/srv/f', kind: 'FILE' } },
    { script: { content: 'cat' }, stdin: { fileId } },
  ]) {
    const { taskId } = await server.data('POST', '/api/tasks', { ...body, target })
    for (const { status, error, exitCode } of (await finished(server, taskId)).results) {
      t.is(status, 'FAILED')
      t.is(exitCode, 126)
      t.regex(error ?? '', /^not started: agent too old/)
    }
  }
  for (const agent of agents)
    t.deepEqual(
      agent.heard.filter(({ type }) => ['EXECUTE_SCRIPT', 'COPY_FILE', 'FETCH_FILE'].includes(type)),
      [],
    )
})

test('P54 a script gets its stdin with its order, and a retry uses the same file', async (t) => {
  const { server, identity, agent, target } = await site(t)
  const { fileId, sha256 } = await upload(server, 'read me\n')
  const { taskId } = await server.data('POST', '/api/tasks', {
    script: { content: 'cat' },
    stdin: { fileId },
    target,
  })
  t.deepEqual((await agent.execution(taskId)).stdin, { fileId, size: 8, sha256: sha256 ?? '' })
  t.is((await agentReads(server, identity, fileId)).bytes.toString(), 'read me\n')
  agent.complete(taskId, 1, { lastSequence: -1 })
  await finished(server, taskId)
  const { taskId: again } = await server.data('POST', `/api/tasks/${taskId}/retry`, {})
  t.is((await agent.execution(again)).stdin?.fileId, fileId)
  t.is((await agentReads(server, identity, fileId)).bytes.toString(), 'read me\n')
  const copy = { fileId, path: '/srv/f', kind: 'FILE' }
  const { taskId: copied } = await server.data('POST', '/api/tasks', { copy, target })
  await agent.next('COPY_FILE')
  agent.complete(copied, 1, { lastSequence: -1 })
  await finished(server, copied)
  const { taskId: retried } = await server.data('POST', `/api/tasks/${copied}/retry`, {})
  const order = await agent.next('COPY_FILE', ({ taskId }) => taskId === retried)
  t.is(order.copy.path, '/srv/f')
  t.is((await agentReads(server, identity, fileId)).bytes.toString(), 'read me\n')
})

test('P54 bytes missing on the disk are a 410, not a truncated answer', async (t) => {
  const { server, identity, agent, target } = await site(t)
  const { fileId } = await upload(server, 'content')
  await server.data('POST', '/api/tasks', { copy: { fileId, path: '/srv/f', kind: 'FILE' }, target })
  await agent.next('COPY_FILE')
  await rm(join(server.dataDir, 'files', fileId))
  const { status, headers, bytes } = await agentReads(server, identity, fileId)
  t.is(status, 410)
  t.regex(headers.get('content-type') ?? '', /^application\/json/)
  t.regex(JSON.parse(bytes.toString()).message, /not on the server's disk/)
})

test('P54 a reader that disconnects at once leaves no file open', async (t) => {
  const { server, identity, agent, target } = await site(t)
  const { fileId } = await upload(server, randomBytes(1_000_000))
  await server.data('POST', '/api/tasks', { copy: { fileId, path: '/srv/f', kind: 'FILE' }, target })
  await agent.next('COPY_FILE')
  const { hostname, port } = new URL(server.url)
  for (let nth = 0; nth < 20; nth += 1) {
    const socket = connect({ host: hostname, port: Number(port) })
    const head = `GET /api/agent/files/${fileId} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${identity.token}\r\n\r\n`
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.write(head, () => resolve())
    })
    socket.destroy()
  }
  const stored = join(server.dataDir, 'files', fileId)
  const descriptors = async () => {
    const open = await readdir('/proc/self/fd')
    const paths = await Promise.all(open.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
    return paths.filter((path) => path === stored).length
  }
  t.is((await agentReads(server, identity, fileId)).status, 200)
  await until('none is open', async () => (await descriptors()) === 0, 10_000)
})

test('a secret file without an explicit mode is sent with mode 0600', async (t) => {
  const { server, agent, target } = await site(t)
  const ordered = async (uploaded: string, how: object) => {
    const { fileId } = await upload(server, 'content', uploaded)
    const copy = { fileId, path: '/srv/f', kind: 'FILE', ...how }
    const { taskId } = await server.data('POST', '/api/tasks', { copy, target })
    const order = await agent.next('COPY_FILE')
    agent.complete(taskId, 0, { changed: true, lastSequence: -1 })
    await finished(server, taskId)
    return order.copy
  }
  t.is((await ordered('secret=true', {})).sourceMode, '0600')
  t.is((await ordered('secret=true', { sourceMode: '0640' })).sourceMode, '0640')
  t.is((await ordered('secret=true', { kind: 'TREE' })).sourceMode, undefined)
  t.is((await ordered('', {})).sourceMode, undefined)
})

test('A04 a secret file is sealed on disk, arrives unchanged, and is removed after its task; a retry is a 409', async (t) => {
  const { server, identity, agent, target } = await site(t)
  const bytes = randomBytes(200_000)
  const { fileId, sha256, size } = await upload(server, bytes, 'secret=true')
  t.is(sha256, sha256Of(bytes))
  t.is(size, bytes.length)
  const stored = await readFile(join(server.dataDir, 'files', fileId))
  t.is(stored.indexOf(bytes.subarray(1000, 1032)), -1)
  const copy = { fileId, path: '/srv/secret', kind: 'FILE' }
  const { taskId } = await server.data('POST', '/api/tasks', { copy, target })
  await agent.next('COPY_FILE')
  await server.restart()
  const again = await ScriptedAgent.link(server, identity, {
    capabilities: { files: true },
    tasks: [{ taskId, state: 'RUNNING', lastSequence: -1 }],
  })
  t.deepEqual((await agentReads(server, identity, fileId)).bytes, bytes)
  t.deepEqual(
    (await agentReads(server, identity, fileId, 'bytes=70000-140000')).bytes,
    bytes.subarray(70_000, 140_001),
  )
  again.complete(taskId, 1, { lastSequence: -1 })
  await finished(server, taskId)
  await until(
    'the secret file is gone',
    async () => !(await readdir(join(server.dataDir, 'files'))).includes(fileId),
  )
  t.is((await server.api('GET', `/api/files/${fileId}`)).status, 404)
  t.is((await server.api('POST', `/api/tasks/${taskId}/retry`, {})).status, 409)
})
