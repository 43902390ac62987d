import { createPublicKey, verify } from 'node:crypto'
import type { ExecutionContext } from 'ava'
import test from 'ava'
import { type SignedType, signedBytes } from '../../../src/core/protocol/orders.ts'
import { end, noted } from '../../helpers/agents/noted-link.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask, task } from '../../helpers/clients/tasks.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { openTerminal, withTerminals } from '../../helpers/terminals/terminals.ts'
import { until } from '../../helpers/until.ts'

async function linked(t: ExecutionContext, storeId: string | null = 'store-1') {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { storeId })
  await agent.settled()
  return { server, identity, agent }
}

/** A host whose agent knows the key of its server. */
async function trusting(server: TestServer, agentId: string) {
  const { token: enrollment } = await server.data('POST', '/api/enrollment-tokens', {})
  const { body } = await server.api(
    'POST',
    '/api/agent/register',
    { agentId, hostname: agentId },
    { authorization: `Bearer ${enrollment}` },
  )
  const { hostId, token, serverKey, keyId } = body.data
  const spki = Buffer.concat([
    Buffer.from('302a300506032b6570032100', 'hex'),
    Buffer.from(serverKey, 'base64'),
  ])
  const key = createPublicKey({ key: spki, format: 'der', type: 'spki' })
  const isSigned = (type: SignedType, payload: { signature?: string; linkId?: string }, receiver = agentId) =>
    verify(null, signedBytes(type, receiver, payload), key, Buffer.from(payload.signature ?? '', 'base64'))
  return { identity: { hostId, agentId, token }, keyId, isSigned }
}

test('P16 P19 every execution is signed for its agent, over every field, and expires in 5 minutes', async (t) => {
  const server = await startTestServer(t)
  const { identity, keyId, isSigned } = await trusting(server, 'signed')
  const agent = await ScriptedAgent.link(server, identity, { linkId: 'of-this-link' })
  const taskId = await startTask(server, [identity.hostId], {
    script: { content: 'echo $A', type: 'PYTHON' },
    params: { A: 'ü "x"' },
    secretParams: { S: 'hidden' },
    timeout: 7,
    runAs: 'app',
    workDir: '/tmp',
    maxOutputBytes: 4096,
  })
  const execution = await agent.execution(taskId)
  t.is(execution.keyId, keyId)
  t.like(execution.params, { A: 'ü "x"', S: 'hidden' })
  t.like(execution, {
    scriptType: 'PYTHON',
    timeout: 7,
    runAs: 'app',
    workDir: '/tmp',
    script: 'echo $A',
    maxOutputBytes: 4096,
    linkId: 'of-this-link',
  })
  const life = Date.parse(execution.expiry ?? '') - Date.now()
  t.true(life > 290_000 && life <= 300_000)
  t.true(isSigned('EXECUTE_SCRIPT', execution))
  t.false(isSigned('EXECUTE_SCRIPT', execution, 'other'))
  for (const field of Object.keys(execution))
    if (field !== 'signature')
      t.false(isSigned('EXECUTE_SCRIPT', { ...execution, [field]: 'altered' }), field)
  agent.complete(taskId, 0, { lastSequence: -1 })
  const shown = JSON.stringify([
    await finished(server, taskId),
    await server.data('GET', `/api/tasks/${taskId}/script`),
  ])
  t.false(shown.includes('hidden'))
})

test("P36 frames carry the signed linkId of the link's HELLO, and none if that HELLO has none", async (t) => {
  const server = await startTestServer(t)
  const { identity, isSigned } = await trusting(server, 'web1')
  const link = (more: object) => ScriptedAgent.link(server, identity, { ...withTerminals, ...more })
  const taskId = await startTask(server, [identity.hostId], {})
  const first = await link({ linkId: 'first' })
  t.is((await first.execution(taskId)).linkId, 'first')
  await first.cut()
  const second = await link({ linkId: 'second' })
  const execution = await second.execution(taskId)
  const { frame } = await openTerminal(server, second, identity.hostId)
  for (const [type, payload] of [
    ['EXECUTE_SCRIPT', execution],
    ['TERMINAL_OPEN', frame],
  ] as const) {
    t.is(payload.linkId, 'second', type)
    t.true(isSigned(type, payload), type)
    t.false(isSigned(type, { ...payload, linkId: 'first' }), type)
  }
  await second.cut()
  const third = await link({})
  t.false('linkId' in (await third.execution(taskId)))
})

test('P11 an agent of rsm that does not send HELLO first has its link closed with 4400', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { hello: false })
  agent.output('nosuch', 0, 'x')
  t.is((await agent.closed).code, 4400)
})

test('P11 a second HELLO, or one of a base-protocol agent, is answered with ERROR', async (t) => {
  const { server, identity, agent } = await linked(t)
  agent.hello('store-9')
  t.is((await agent.next('ERROR')).code, 400)
  const base = await ScriptedAgent.link(server, identity, { storeId: null })
  base.hello('store-9')
  t.is((await base.next('ERROR')).code, 400)
})

for (const [what, data] of [
  ['a binary frame', Buffer.from('{}')],
  ['text that is not JSON', '{"type":'],
  ['JSON that is not an object', '[]'],
  ['null', 'null'],
  ['an empty frame', ''],
  ['a frame without type', '{"id":"1"}'],
  ['a frame without id', '{"type":"SCRIPT_OUTPUT"}'],
  ['a number for a type', '{"type":1,"id":"1"}'],
] as const)
  test(`P32 ${what} closes the link with 4400, and the server keeps running`, async (t) => {
    const { server, identity, agent } = await linked(t)
    agent.socket.send(data, { binary: typeof data !== 'string' })
    t.is((await agent.closed).code, 4400)
    await (await ScriptedAgent.link(server, identity)).settled()
  })

test('P33 a frame over 1 MiB closes the link with 1009; one just below is accepted', async (t) => {
  const { server, identity, agent } = await linked(t)
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  agent.output(taskId, 0, 'x'.repeat(1024 * 1024 - 512))
  await agent.acknowledged(taskId, 0)
  agent.socket.send(JSON.stringify({ type: 'X', id: '1', payload: 'x'.repeat(2 * 1024 * 1024) }))
  t.is((await agent.closed).code, 1009)
  t.is((await task(server, taskId)).results[0]?.status, 'RUNNING')
})

test('P31 an unknown type is answered with an ERROR that names type and frame, and the link stays open', async (t) => {
  const { agent } = await linked(t)
  for (const type of ['NOSUCH', '__proto__', 'constructor', 'EXECUTE_SCRIPT', 'x'.repeat(10_000)]) {
    agent.socket.send(JSON.stringify({ type, id: type.slice(0, 20), timestamp: '', payload: {} }))
    const error = await agent.next('ERROR')
    t.is(error.code, 400)
    t.is(error.refId, type.slice(0, 20))
  }
  await agent.settled()
})

test('P31 an ERROR is never answered with ERROR', async (t) => {
  const { agent } = await linked(t)
  agent.send('ERROR', { code: 400, message: 'you', refId: null })
  agent.socket.send(JSON.stringify({ type: 'ERROR', id: 'bad', payload: { code: 'x' } }))
  agent.socket.send(JSON.stringify({ type: 'ERROR', id: 'worse' }))
  await agent.settled()
  t.deepEqual(
    agent.heard.filter(({ type, payload }) => type === 'ERROR' && !payload.refId?.startsWith('probe')),
    [],
  )
})

test('P31 a malformed payload is answered with ERROR and changes nothing', async (t) => {
  const { server, identity, agent } = await linked(t)
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  const good = { taskId, stream: 'stdout', data: 'x', sequence: 0 }
  const bad: unknown[] = [
    ...[-1, 1.5, '0', null, 2 ** 53, 1e308].map((sequence) => ({ ...good, sequence })),
    ...[null, 1, {}, ['x']].map((data) => ({ ...good, data })),
    ...['stdin', '', null, 7].map((stream) => ({ ...good, stream })),
    ...['', '../x', 'a/b', 'x'.repeat(65), null].map((id) => ({ ...good, taskId: id })),
    null,
    [],
    'x',
  ]
  for (const [at, payload] of bad.entries()) {
    agent.socket.send(JSON.stringify({ type: 'SCRIPT_OUTPUT', id: `bad${at}`, timestamp: '', payload }))
    const error = await agent.next('ERROR')
    t.is(error.refId, `bad${at}`)
  }
  for (const exitCode of [-2, 256, 1.5, '0', null])
    agent.send('SCRIPT_COMPLETE', { ...good, exitCode, duration: 0, startedAt: '', completedAt: '' } as never)
  await agent.settled()
  agent.output(taskId, 0, 'lone \ud800 surrogate')
  agent.complete(taskId, 0, { lastSequence: 0 })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})

test('P29 frames for an unknown task are answered with an ERROR 404 that names the frame', async (t) => {
  const { agent } = await linked(t)
  const id = agent.send('SCRIPT_OUTPUT', { taskId: 'nosuch', stream: 'stdout', data: 'x', sequence: 0 })
  t.like(await agent.next('ERROR'), { code: 404, refId: id })
  agent.complete('nosuch')
  t.is((await agent.next('ERROR')).code, 404)
})

test("P30 frames for another host's task are refused with 403 and change nothing", async (t) => {
  const { server, identity, agent } = await linked(t)
  const other = await ScriptedAgent.link(server, await server.enroll('web2'))
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  other.output(taskId, 0, 'forged')
  t.is((await other.next('ERROR')).code, 403)
  other.complete(taskId)
  t.is((await other.next('ERROR')).code, 403)
  agent.complete(taskId, 0, { lastSequence: -1 })
  await finished(server, taskId)
  other.output(taskId, 0, 'forged')
  t.is((await other.next('ERROR')).code, 403)
  other.complete(taskId, 1)
  t.is((await other.next('ERROR')).code, 403)
  t.is((await task(server, taskId)).results[0]?.exitCode, 0)
})

test('P30 the record of an ended task knows its hosts even without its results', async (t) => {
  const { services, engine, results } = await startInsides(t)
  const [own, foreign] = await Promise.all(
    ['web1', 'web2'].map(async (hostname, at) => {
      const { id } = await services.hosts.create({ hostname, ip: `192.0.2.${at + 1}` })
      const agent = noted(id)
      await engine.linked(agent.link)
      return { agent, hostId: id }
    }),
  )
  if (!own || !foreign) throw new Error('two hosts')
  const target = { hostIds: [own.hostId] }
  const { taskId } = await services.tasks.create({ script: { content: 'x' }, target })
  await until('it is sent', () => own.agent.executions.length === 1)
  await engine.complete(own.agent.link, 'end', end(taskId, 0))
  await until('the task ends', async () => (await services.tasks.get(taskId)).status !== 'RUNNING')
  await results.forget(taskId)
  const output = { taskId, stream: 'stdout' as const, data: 'x', sequence: 0 }
  await engine.output(own.agent.link, 'f1', output)
  t.deepEqual(own.agent.acknowledged, [0])
  await engine.output(foreign.agent.link, 'f2', output)
  t.deepEqual(foreign.agent.errors, [403])
})

test('P28 repeated ends of an ended task read its results only once', async (t) => {
  const { services, engine, results } = await startInsides(t)
  const { id } = await services.hosts.create({ hostname: 'web1', ip: '192.0.2.1' })
  const agent = noted(id)
  await engine.linked(agent.link)
  const target = { hostIds: [id] }
  const { taskId } = await services.tasks.create({ script: { content: 'x' }, target })
  await until('it is sent', () => agent.executions.length === 1)
  await engine.complete(agent.link, 'end', end(taskId, 0))
  await until('the task ends', async () => (await services.tasks.get(taskId)).status !== 'RUNNING')
  let reads = 0
  const real = { ...results }
  results.read = (which) => {
    reads++
    return real.read(which)
  }
  const repeats = Array.from({ length: 50 }, (_, at) =>
    engine.complete(agent.link, `again-${at}`, end(taskId, 1)),
  )
  await Promise.all(repeats)
  t.deepEqual(agent.strays, [])
  await engine.complete(agent.link, 'once-more', end(taskId, 1))
  t.deepEqual(agent.strays, [taskId])
  t.is(agent.released.length, 52)
  t.is(reads, 1)
})

test('P28 frames for an ended task are acknowledged and dropped; final states never change', async (t) => {
  const { server, identity, agent } = await linked(t)
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  agent.complete(taskId, 0, { lastSequence: -1 })
  await finished(server, taskId)
  const before = await task(server, taskId)
  agent.output(taskId, 0, 'late')
  await agent.acknowledged(taskId, 0)
  agent.complete(taskId, 1, { lastSequence: 0 })
  await agent.released(taskId)
  await agent.released(taskId)
  t.deepEqual(await task(server, taskId), before)
  t.deepEqual((await server.data('GET', `/api/tasks/${taskId}/logs`)).entries, [])
})

test('P28 later reports about a LOST host go to lateResult, during its task and after', async (t) => {
  const { server, identity, agent } = await linked(t)
  const second = await server.enroll('web2')
  const other = await ScriptedAgent.link(server, second)
  const taskId = await startTask(server, [identity.hostId, second.hostId])
  await agent.execution(taskId)
  await other.execution(taskId)
  await agent.cut()
  const returned = await ScriptedAgent.link(server, identity, { storeId: 'store-2' })
  await returned.settled()
  returned.complete(taskId, 5, { lastSequence: -1 })
  await returned.released(taskId)
  t.like((await task(server, taskId)).results[0], { status: 'LOST', exitCode: null })
  t.like((await task(server, taskId)).results[0]?.lateResult, { status: 'FAILED', exitCode: 5 })
  other.complete(taskId, 0, { lastSequence: -1 })
  const ended = await finished(server, taskId)
  t.is(ended.results[0]?.lateResult?.exitCode, 5)
  await server.restart()
  t.is((await task(server, taskId)).results[0]?.lateResult?.exitCode, 5)
})

test('P35 terminal frames for a session that is not open are answered with ERROR', async (t) => {
  const { agent } = await linked(t)
  agent.send('TERMINAL_OUTPUT', { sessionId: 's1', data: 'x' })
  t.is((await agent.next('ERROR')).code, 404)
})
