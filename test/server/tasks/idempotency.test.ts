import test from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

test('a repeated Idempotency-Key of the same user returns the first task and starts nothing', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  agent.serve()
  const body = { script: { content: 'true' }, target: { hostIds: [identity.hostId] } }
  const post = (key: string, content: unknown = body) =>
    server.api('POST', '/api/tasks', content, { 'idempotency-key': key })
  const answers = await Promise.all(Array.from({ length: 8 }, () => post('deploy-17')))
  const ids = new Set(answers.map((answer) => answer.body.data.taskId))
  t.is(ids.size, 1)
  const [taskId = ''] = ids
  await finished(server, taskId)
  await server.restart()
  const after = await post('deploy-17')
  t.is(after.body.data.taskId, taskId)
  t.is(after.body.data.status, 'SUCCESS')
  t.is(answers.filter(({ body }) => body.data.replayedAfterSeconds === null).length, 1)
  t.true(after.body.data.replayedAfterSeconds >= 0)
  t.is((await server.data('GET', '/api/tasks')).totalElements, 1)
  t.is(agent.heard.filter(({ type }) => type === 'EXECUTE_SCRIPT').length, 1)
  t.is((await post('deploy-17', { ...body, timeout: 5 })).status, 409)
  t.is((await post('x'.repeat(256))).status, 400)
  const other = await server.data('POST', '/api/users', {
    username: 'op',
    password: 'long enough',
    role: 'OPERATOR',
  })
  t.truthy(other.id)
  const { token } = await server.data('POST', '/api/auth/login', { username: 'op', password: 'long enough' })
  const theirs = await server.api('POST', '/api/tasks', body, {
    'idempotency-key': 'deploy-17',
    authorization: `Bearer ${token}`,
  })
  t.not(theirs.body.data.taskId, taskId)
})

test('async:false answers when the task has ended, with its final status and results', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  agent.serve(() => ({ exitCode: 3, output: 'x' }))
  const { status, body } = await server.api('POST', '/api/tasks', {
    script: { content: 'true' },
    target: { selector: 'web1' },
    async: false,
  })
  t.is(status, 200)
  t.is(body.data.status, 'FAILED')
  t.is(body.data.results[0].exitCode, 3)
  t.is(body.data.hostCount, 1)
})

test('all errors of an execution are reported at once, and no task starts', async (t) => {
  const server = await startTestServer(t)
  const { hostId } = await server.enroll('web1')
  const cases: [object, string[]][] = [
    [{ target: { hostIds: [] }, script: { content: 'x' } }, ['target.hostIds']],
    [{ target: {}, script: { content: 'x' } }, ['target']],
    [
      { target: { hostIds: [hostId, 99, 98] }, script: { content: 'x' } },
      ['target.hostIds[1]', 'target.hostIds[2]'],
    ],
    [{ target: { hostIds: [hostId], selector: 'web1' }, script: { content: 'x' } }, ['target']],
    [{ target: { selector: 'web2' }, script: { content: 'x' } }, ['target.selector']],
    [{ target: { clusterId: 9 }, script: { content: 'x' } }, ['target.clusterId']],
    [{ target: { hosts: ['web1'], selector: 'web1' }, script: { content: 'x' } }, ['target']],
    [{ target: { exclude: ['web1'] }, script: { content: 'x' } }, ['target']],
    [{ target: { all: false }, script: { content: 'x' } }, ['target']],
    [{ target: { hosts: [], tags: ['role=web'] }, script: { content: 'x' } }, ['target.hosts']],
    [
      { target: { hosts: ['web1', 'web2'], clusters: ['c'] }, script: { content: 'x' } },
      ['target.hosts[1]', 'target.clusters[0]'],
    ],
    [{ target: { all: true, exclude: ['web1'] }, script: { content: 'x' } }, ['target']],
    [{ target: { hostIds: [hostId] } }, ['scriptId']],
    [{ target: { hostIds: [hostId] }, scriptId: 5 }, ['scriptId']],
    [
      {
        target: { hostIds: [hostId] },
        script: { content: 'x' },
        params: { PATH: '/', LD_PRELOAD: 'x', OK: '1' },
      },
      ['params.PATH', 'params.LD_PRELOAD'],
    ],
    [{ target: { hostIds: [hostId] }, script: { content: 'x' }, batchsize: 2 }, ['batchsize']],
    [
      {
        target: { hostIds: [hostId] },
        script: { content: ' ' },
        timeout: -1,
        strategy: 'ALL',
        concurrency: 0,
      },
      ['script.content', 'timeout', 'strategy', 'concurrency'],
    ],
    [{ target: { hostIds: [hostId] }, script: { content: 'x' }, params: { 'a-b': 'x' } }, ['params.a-b']],
  ]
  for (const [body, fields] of cases) {
    const answer = await server.api('POST', '/api/tasks', body)
    t.is(answer.status, 400)
    t.deepEqual(answer.body.errors?.map(({ field }) => field).sort(), fields.sort(), JSON.stringify(body))
  }
  t.is((await server.data('GET', '/api/tasks')).totalElements, 0)
})
