import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { agentProcess, kill } from '../../helpers/agents/agent-process.ts'
import { copyingAgent } from '../../helpers/agents/copying-agent.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'
import { FileRoutes, sha256 } from '../../helpers/servers/file-routes.ts'
import { until } from '../../helpers/until.ts'

const isRoot = process.getuid?.() === 0
const asRoot = isRoot ? test : test.skip // Only root may become another user.
const bytes = Buffer.alloc(3_000_000, 'files of rsm ')

test('a script reads the stdin of its order, also by name, and none without one', async (t) => {
  const { server, agent, fileRoutes, dataDir } = await copyingAgent(t)
  const stdin = fileRoutes.put('f1', bytes)
  server.execute(agent.agentId, { taskId: 'reads', script: 'sha256sum; sha256sum /dev/stdin; env', stdin })
  const complete = await server.completed('reads')
  t.like(complete, { status: 'SUCCESS', exitCode: 0, error: null })
  t.false('changed' in complete)
  const [piped, named] = server.text('reads').split('\n')
  t.is(piped, `${sha256(bytes)}  -`)
  t.is(named, `${sha256(bytes)}  /dev/stdin`)
  t.false(existsSync(join(dataDir, 'executions/reads/stdin')), 'it is removed at the end of the script')
  server.execute(agent.agentId, {
    taskId: 'python',
    scriptType: 'PYTHON',
    script: 'print(input())',
    stdin: fileRoutes.put('f2', 'line\n'),
  })
  await server.completed('python')
  t.is(server.text('python'), 'line\n')
  server.execute(agent.agentId, { taskId: 'empty', script: 'wc -c', stdin: fileRoutes.put('f3', '') })
  await server.completed('empty')
  t.is(server.text('empty').trim(), '0')
  const verify = { script: 'wc -c', scriptType: 'BASH', retries: 0, intervalSeconds: 1, timeout: 10 } as const
  server.execute(agent.agentId, {
    taskId: 'gated',
    script: 'wc -c',
    stdin: fileRoutes.put('f4', '1234'),
    verify,
  })
  t.is((await server.completed('gated')).status, 'SUCCESS')
  t.deepEqual(server.text('gated').trim().split(/\s+/), ['4', '0'], 'a verification reads nothing')
  server.execute(agent.agentId, { taskId: 'none', script: 'wc -c' })
  await server.completed('none')
  t.is(server.text('none').trim(), '0')
})

asRoot('another user’s script reads its stdin, also by name, in any sandbox', async (t) => {
  for (const sandbox of ['none', 'user', 'strict'] as const) {
    const { server, agent, fileRoutes } = await copyingAgent(t, { runAs: 'nobody', sandbox }).catch(
      (error: Error) => {
        if (!/not run scripts with --sandbox strict/.test(error.message)) throw error
        return { server: null, agent: null, fileRoutes: null }
      },
    )
    if (server === null) continue
    const script = 'id -un; cat /dev/stdin; ls -l /proc/self/fd/0 | cut -d" " -f1'
    server.execute(agent.agentId, { taskId: 'reads', script, stdin: fileRoutes.put('f1', 'text\n') })
    t.is((await server.completed('reads')).status, 'SUCCESS', sandbox)
    t.regex(server.text('reads'), /^nobody\ntext\n/)
  }
})

test('a script whose stdin cannot be fetched does not begin, and its error says why', async (t) => {
  const { server, agent, fileRoutes } = await copyingAgent(t)
  const stdin = fileRoutes.put('f1', 'text')
  fileRoutes.files.set('f1', Buffer.from('TEXT'))
  server.execute(agent.agentId, { taskId: 'wrong', script: 'echo begun', stdin })
  const wrong = await server.completed('wrong')
  t.like(wrong, { status: 'FAILED', exitCode: 126 })
  t.regex(wrong.error ?? '', /has sha256 .* as signed/)
  t.is(server.text('wrong'), '')
  server.execute(agent.agentId, { taskId: 'none', script: 'echo begun', stdin: { ...stdin, fileId: 'no' } })
  t.regex((await server.completed('none')).error ?? '', /answered 404/)
  // Params that are environment variables do not reach processes of the agent.
  const params = { http_proxy: 'http://127.0.0.1:1', SSL_CERT_FILE: '/nowhere' }
  server.execute(agent.agentId, {
    taskId: 'params',
    script: 'cat',
    params,
    stdin: fileRoutes.put('f2', 'text'),
  })
  t.is((await server.completed('params')).status, 'SUCCESS')
  t.is(server.text('params'), 'text')
})

test('a script begins once, with all of its stdin, although its agent is killed during the fetch', async (t) => {
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const dataDir = await temporaryDirectory(t)
  const fileRoutes = new FileRoutes(server)
  let release = () => {}
  fileRoutes.fault = (request, response, nth) => {
    const asked = fileRoutes.asked(request)
    if (nth > 1 || asked === null) return false
    response.writeHead(200).write(asked.bytes.subarray(0, 100))
    release = () => void response.end(asked.bytes.subarray(100))
    return true
  }
  const agent = await agentProcess(t, server, dataDir, { agentId: 'reading' })
  await server.linked()
  server.execute('reading', {
    taskId: 'reads',
    script: `echo started >> ${dataDir}/starts; sha256sum; cat ${dataDir}/starts`,
    stdin: fileRoutes.put('f1', bytes),
  })
  await until('it is requested', () => fileRoutes.requests.length === 1)
  await kill(agent, 'SIGKILL')
  t.false(existsSync(join(dataDir, 'starts')))
  await agentProcess(t, server, dataDir, { agentId: 'reading' })
  await server.linked(2)
  release()
  t.is((await server.completed('reads')).status, 'SUCCESS')
  t.is(server.text('reads'), `${sha256(bytes)}  -\nstarted\n`)
})

test('a script cancelled while its stdin is fetched does not begin', async (t) => {
  const { server, agent, fileRoutes, directory } = await copyingAgent(t)
  fileRoutes.fault = (_, response) => {
    response.writeHead(200).write('t')
    return true
  }
  const script = `touch ${directory}/begun`
  server.execute(agent.agentId, { taskId: 'reads', script, stdin: fileRoutes.put('f1', 'text') })
  await until('it is requested', () => fileRoutes.requests.length === 1)
  server.send('CANCEL_SCRIPT', { taskId: 'reads' })
  t.is((await server.completed('reads')).status, 'CANCELLED')
  t.deepEqual(readdirSync(directory), [])
})
