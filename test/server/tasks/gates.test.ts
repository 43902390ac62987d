import test from 'ava'
import { gatesContract } from '../../contracts/gates.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

gatesContract(test, 'on a data directory', startTestServer)

const text = { script: { content: 'true' } }
const bad: [string, object, string, RegExp][] = [
  ['retries below 0', { verify: { ...text, retries: -1 } }, 'verify.retries', /./],
  ['too many retries', { verify: { ...text, retries: 1001 } }, 'verify.retries', /./],
  ['a fraction of a retry', { verify: { ...text, retries: 0.5 } }, 'verify.retries', /./],
  ['an interval below 0', { verify: { ...text, intervalSeconds: -1 } }, 'verify.intervalSeconds', /./],
  ['a timeout below 0', { verify: { ...text, timeout: -1 } }, 'verify.timeout', /./],
  ['neither script nor scriptId', { verify: { retries: 1 } }, 'verify', /exactly one of scriptId and script/],
  ['both of them', { rollback: { ...text, scriptId: 1 } }, 'rollback', /exactly one of scriptId and script/],
  ['a script that does not exist', { rollback: { scriptId: 77 } }, 'rollback.scriptId', /no such script/],
  ['an empty text', { verify: { script: { content: '' } } }, 'verify.script.content', /./],
  [
    'a script in another language',
    { verify: { script: { content: '#!/usr/bin/perl\n' } } },
    'verify.script.content',
    /./,
  ],
  [
    'a huge text',
    { rollback: { script: { content: 'x'.repeat(1024 * 1024 + 1) } } },
    'rollback.script.content',
    /./,
  ],
  ['retries of a rollback', { rollback: { ...text, retries: 1 } }, 'rollback.retries', /./],
  ['an unknown name', { verify: { ...text, retry: 1 } }, 'verify.retry', /./],
]

test('each error in gates is reported with its field, and no task starts', async (t) => {
  const server = await startTestServer(t)
  const { hostId } = await server.enroll('web1')
  const target = { hostIds: [hostId] }
  for (const [what, gates, field, message] of bad) {
    const { status, body } = await server.api('POST', '/api/tasks', { ...text, target, ...gates })
    t.is(status, 400, what)
    t.deepEqual(
      body.errors?.map((fault) => fault.field),
      [field],
      what,
    )
    t.regex(body.errors?.[0]?.message ?? '', message, what)
  }
  const upgrade = await server.api('POST', '/api/tasks', { upgrade: {}, target, verify: text })
  t.is(upgrade.status, 400)
  t.true(upgrade.body.errors?.some(({ field }) => field === 'verify'))
  t.is((await server.data('GET', '/api/tasks')).totalElements, 0)
})

test('parameters that stored gate scripts declare are validated with those of the script', async (t) => {
  const server = await startTestServer(t)
  const { hostId } = await server.enroll('web1')
  const store = async (name: string, line: string) =>
    (
      await server.data('POST', '/api/scripts', {
        name,
        type: 'BASH',
        content: `#!/bin/bash\n# rsm: ${line}\ntrue`,
      })
    ).id
  const scriptId = await store('deploy', 'param VERSION required')
  const verify = { scriptId: await store('is-well', 'param PORT required pattern="[0-9]+"') }
  const ask = (params: object) =>
    server.api('POST', '/api/tasks', { scriptId, verify, params, target: { hostIds: [hostId] } })
  const fields = async (params: object) => (await ask(params)).body.errors?.map(({ field }) => field)
  t.deepEqual(await fields({ VERSION: '1' }), ['params.PORT'])
  t.deepEqual(await fields({ VERSION: '1', PORT: 'x' }), ['params.PORT'])
  t.deepEqual(await fields({ VERSION: '1', PORT: '80', PROT: '1' }), ['params.PROT'])
  t.is((await ask({ VERSION: '1', PORT: '80' })).status, 200)
})

test('the longest scripts that the API accepts fit into one message', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { capabilities: { gates: true } })
  // A request body has at most 2 MiB, and each of these characters takes six bytes in JSON.
  const content = `true #${'\u0001'.repeat(345_000)}`
  const { id: scriptId } = await server.data('POST', '/api/scripts', { name: 'long', type: 'BASH', content })
  const gates = { verify: { scriptId }, rollback: { scriptId } }
  const body = { scriptId, target: { hostIds: [identity.hostId] }, ...gates }
  const { taskId } = await server.data('POST', '/api/tasks', body)
  const sent = await agent.execution(taskId)
  t.is(sent.rollback?.script, content)
  t.true(JSON.stringify(sent).length < 8 * 1024 * 1024)
})

test('an installation with gates is refused', async (t) => {
  const server = await startTestServer(t)
  const { hostId } = await server.enroll('web1')
  const { status, body } = await server.api('POST', '/api/tasks', {
    install: { url: 'http://127.0.0.1:1' },
    target: { hostIds: [hostId] },
    rollback: text,
  })
  t.is(status, 400)
  t.true(body.errors?.some(({ field }) => field === 'rollback'))
})
