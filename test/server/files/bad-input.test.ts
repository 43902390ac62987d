import test from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { sendBytes, upload } from '../../helpers/clients/files.ts'
import { finished } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

test('each error in a copy, a fetch or a stdin is a 400 that names its field', async (t) => {
  const server = await startTestServer(t)
  const { hostId } = await server.enroll('web1')
  const { fileId } = await upload(server, 'content')
  const { fileId: secret } = await upload(server, 'content', 'secret=true')
  const { data: begun } = await sendBytes(server, 'POST', '/api/files')
  const { fileId: large } = await upload(server, Buffer.alloc(1024 * 1024 + 1))
  const copy = { fileId, path: '/etc/app.conf', kind: 'FILE' }
  const script = { content: 'cat' }
  const faults: [object, string][] = [
    [{ copy: { ...copy, path: 'etc/app.conf' } }, 'copy.path'],
    [{ copy: { ...copy, path: '' } }, 'copy.path'],
    [{ copy: { ...copy, path: '/etc/../shadow' } }, 'copy.path'],
    [{ copy: { ...copy, path: '/etc/..' } }, 'copy.path'],
    [{ copy: { ...copy, path: '/etc/a\0b' } }, 'copy.path'],
    [{ copy: { ...copy, path: '/etc/\ud800' } }, 'copy.path'],
    [{ copy: { ...copy, path: `/${'a'.repeat(4095)}` } }, 'copy.path'],
    [{ copy: { ...copy, path: `/${'ä'.repeat(2048)}` } }, 'copy.path'],
    [{ copy: { ...copy, path: '/etc/' } }, 'copy.path'],
    [{ copy: { ...copy, path: '/etc/%x' } }, 'copy.path'],
    [{ copy: { ...copy, path: '/etc/100%' } }, 'copy.path'],
    [{ copy: { ...copy, mode: '0999' } }, 'copy.mode'],
    [{ copy: { ...copy, mode: '77777' } }, 'copy.mode'],
    [{ copy: { ...copy, mode: 640 } }, 'copy.mode'],
    [{ copy: { ...copy, mode: 'u+x' } }, 'copy.mode'],
    [{ copy: { ...copy, owner: '' } }, 'copy.owner'],
    [{ copy: { ...copy, owner: '-1' } }, 'copy.owner'],
    [{ copy: { ...copy, owner: 'root:root' } }, 'copy.owner'],
    [{ copy: { ...copy, group: 'a b' } }, 'copy.group'],
    [{ copy: { ...copy, kind: 'DEVICE' } }, 'copy.kind'],
    [{ copy: { ...copy, kind: 'TREE', check: 'DIFF' } }, 'copy.check'],
    [{ copy: { ...copy, fileId: secret, check: 'DIFF' } }, 'copy.check'],
    [{ copy: { ...copy, fileId: large, check: 'DIFF' } }, 'copy.check'],
    [{ copy: { ...copy, fileId: begun.fileId } }, 'copy.fileId'],
    [{ copy: { ...copy, fileId: 'none' } }, 'copy.fileId'],
    [{ copy: { ...copy, nonsense: 1 } }, 'copy.nonsense'],
    [{ copy, params: { A: '1' } }, 'params'],
    [{ copy, stdin: { fileId } }, 'stdin'],
    [{ copy, workDir: '/tmp' }, 'workDir'],
    [{ copy, limitRate: 1 }, 'limitRate'],
    [{ copy, script }, 'scriptId'],
    [{ copy, fetch: { path: '/f', kind: 'FILE' } }, 'scriptId'],
    [{ fetch: { path: 'f', kind: 'FILE' } }, 'fetch.path'],
    [{ fetch: { path: '/f/../g', kind: 'TREE' } }, 'fetch.path'],
    [{ fetch: { path: '/f/', kind: 'FILE' } }, 'fetch.path'],
    [{ fetch: { path: '/f', kind: 'FILE', follow: 'yes' } }, 'fetch.follow'],
    [{ script, stdin: { fileId: begun.fileId } }, 'stdin.fileId'],
    [{ script, stdin: { fileId: 'none' } }, 'stdin.fileId'],
    [{ script, limitRate: 100_000 }, 'limitRate'],
  ]
  for (const [body, field] of faults) {
    const answer = await server.api('POST', '/api/tasks', { ...body, target: { hostIds: [hostId] } })
    t.is(answer.status, 400, JSON.stringify(body).slice(0, 200))
    t.deepEqual(
      answer.body.errors?.map((fault) => fault.field),
      [field],
      JSON.stringify(body).slice(0, 200),
    )
  }
})

test('a hostname that makes the path too long starts nothing on its host', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { capabilities: { files: true } })
  await server.data('PATCH', `/api/hosts/${identity.hostId}`, { hostname: `web${'-1'.repeat(30)}` })
  const { fileId } = await upload(server, 'content')
  const path = `/${'a'.repeat(2020)}/%h%h%h${'b'.repeat(2020)}`
  const target = { hostIds: [identity.hostId] }
  const { taskId } = await server.data('POST', '/api/tasks', { copy: { fileId, path, kind: 'FILE' }, target })
  const [result] = (await finished(server, taskId)).results
  t.like(result, { status: 'FAILED', exitCode: 126 })
  t.regex(
    result?.error ?? '',
    /^not started: the path with the name of this host must have at most 4095 bytes/,
  )
  t.false(agent.heard.some(({ type }) => type === 'COPY_FILE'))
})
