import test, { type ExecutionContext } from 'ava'
import fc from 'fast-check'
import type { Task } from '../../../src/core/protocol/http/tasks.ts'
import type { MessageType } from '../../../src/core/protocol/messages.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { counted, finished, startTask, task } from '../../helpers/clients/tasks.ts'
import { badValues, type Kind, textOf, withField } from '../../helpers/faults/bad-fields.ts'
import { badBodies } from '../../helpers/faults/bad-input.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

const at = '2026-11-21T03:25:15.000Z'
const hello = {
  agentVersion: '1',
  storeId: 'store-1',
  linkId: 'link-1',
  instanceId: 'instance-1',
  journal: { sequence: 7 },
  mark: { run: 'run-1', sequence: 7 },
  capabilities: { maxExecutions: 16, scriptTypes: ['BASH'], containment: 'process-group', terminal: false },
  tasks: [{ taskId: 'nosuch', state: 'RUNNING', lastSequence: -1 }],
}
const complete = {
  exitCode: 0,
  duration: 5,
  startedAt: at,
  completedAt: at,
  status: 'SUCCESS',
  lastSequence: -1,
}

/** Every message of an agent: a valid payload, and the kind of each of its fields. */
const messages: Partial<Record<MessageType, { good: object; fields: Record<string, Kind> }>> = {
  SCRIPT_RECEIVED: {
    good: { taskId: 't1', journal: { sequence: 7 } },
    fields: { taskId: 'id', journal: 'object', 'journal.sequence': 'count' },
  },
  SCRIPT_OUTPUT: {
    good: { taskId: 't1', stream: 'stdout', data: 'x', sequence: 0 },
    fields: { taskId: 'id', stream: 'stream', data: 'text', sequence: 'count' },
  },
  SCRIPT_COMPLETE: {
    good: {
      taskId: 't1',
      ...complete,
      signal: null,
      error: null,
      stdoutBytes: 0,
      stderrBytes: 0,
      truncated: false,
    },
    fields: {
      taskId: 'id',
      exitCode: 'exitCode',
      duration: 'number',
      startedAt: 'text',
      completedAt: 'text',
      signal: 'signal',
      error: 'error',
      lastSequence: 'optionalLast',
    },
  },
  AGENT_HELLO: {
    good: hello,
    fields: {
      agentVersion: 'text',
      storeId: 'id',
      instanceId: 'optionalId',
      'journal.sequence': 'count',
      'mark.run': 'id',
      'mark.sequence': 'count',
      capabilities: 'object',
      'capabilities.maxExecutions': 'count',
      'capabilities.scriptTypes': 'names',
      'capabilities.containment': 'name',
      'capabilities.terminal': 'truth',
      tasks: 'list',
      'tasks.0.taskId': 'id',
      'tasks.0.state': 'name',
      'tasks.0.lastSequence': 'last',
    },
  },
  TERMINAL_OPENED: { good: { sessionId: 's1' }, fields: { sessionId: 'id' } },
  TERMINAL_OUTPUT: { good: { sessionId: 's1', data: 'x' }, fields: { sessionId: 'id', data: 'text' } },
  TERMINAL_CLOSED: {
    good: { sessionId: 's1', exitCode: 0, signal: null, reason: null },
    fields: { sessionId: 'id', reason: 'error' },
  },
}

/** Two hosts with one running execution each. */
async function twoHosts(t: ExecutionContext) {
  const server = await startTestServer(t)
  const [first, second] = [await server.enroll('web1'), await server.enroll('web2')]
  const agent = await ScriptedAgent.link(server, first)
  const other = await ScriptedAgent.link(server, second)
  const taskId = await startTask(server, [first.hostId])
  const otherTask = await startTask(server, [second.hostId])
  await agent.execution(taskId)
  await other.execution(otherTask)
  return { server, first, second, agent, other, taskId, otherTask }
}

const frame = (type: string, id: string, payload: unknown) => textOf({ type, id, timestamp: at, payload })

for (const [type, { good, fields }] of Object.entries(messages))
  test(`P31 ${type}: each missing, mistyped, too long or out-of-range field is an ERROR 400 and changes nothing`, async (t) => {
    const { server, first, agent, taskId } = await twoHosts(t)
    const before = await task(server, taskId)
    // On a link that has sent HELLO, any further HELLO is a second one, but its shape is checked first.
    const link = type === 'AGENT_HELLO' ? await ScriptedAgent.link(server, first, { hello: false }) : agent
    const payloads = badValues.object.map((payload) => ['payload', payload] as const)
    const cases = [
      ...payloads.map(([path, value]) => [path, value === badValues.object[0] ? undefined : value] as const),
      ...Object.entries(fields).flatMap(([path, kind]) =>
        badValues[kind].map((value) => [path, withField(good, path, value)] as const),
      ),
    ]
    for (const [n, [path, payload]] of cases.entries())
      link.socket.send(frame(type, `bad-${n}-${path}`, payload))
    for (const [n, [path, payload]] of cases.entries()) {
      const error = await link.next('ERROR', ({ refId }) => refId === `bad-${n}-${path}`)
      t.is(error.code, 400, `${path} ${JSON.stringify(payload)?.slice(0, 200)}`)
      t.true(error.message.startsWith(`${type}: payload`) && error.message.length <= 1000, error.message)
    }
    const after = await task(server, taskId)
    // The host counts as disconnected until the replacing link sends HELLO.
    const silent = (shown: Task) => ({
      ...shown,
      results: shown.results.map((one) => ({ ...one, error: null })),
    })
    t.deepEqual(silent(after), silent(before))
    if (type === 'AGENT_HELLO') link.hello('store-1')
    await link.settled()
  })

test('P31 a malformed ERROR is not answered, and the link stays open', async (t) => {
  const { agent } = await twoHosts(t)
  const good = { code: 400, message: 'x', refId: null }
  for (const [path, kind] of Object.entries({ code: 'number', message: 'error' } as const))
    for (const value of badValues[kind]) agent.socket.send(frame('ERROR', 'e', withField(good, path, value)))
  agent.socket.send(frame('ERROR', 'e', { ...good, refId: 'x'.repeat(100_000) }))
  await agent.settled()
  t.is(agent.heard.filter(({ type }) => type === 'ERROR').length, 1, 'only the probe is answered')
})

test('P08 unknown fields, repeated keys, hostile names and deep values beside known fields are ignored', async (t) => {
  const { server, agent, taskId } = await twoHosts(t)
  const text = frame('SCRIPT_OUTPUT', 'odd', { taskId, stream: 'stdout', data: 'one', sequence: 0 })
  const nested = (depth: number) => `${'{"a":['.repeat(depth)}1${']}'.repeat(depth)}`
  const odd = [
    text.replace('{', '{"extra":1,"__proto__":{"type":"X"},"constructor":{"prototype":{"id":1}},'),
    text.replace('"taskId"', `"deep":${nested(10_000)},"taskId"`),
    text.replace('"taskId"', `"__proto__":{"sequence":7},"taskId":"other","taskId"`),
    text.replace(at, '\\u0000never'),
    text.replace(`"timestamp":"${at}",`, ''),
    `\n\t ${text} `,
  ]
  for (const one of odd) agent.socket.send(one)
  await agent.settled()
  await agent.acknowledged(taskId, 0)
  agent.complete(taskId, 0, { lastSequence: 0 })
  const ended = await finished(server, taskId)
  t.like(ended.results[0], { status: 'SUCCESS', stdoutBytes: 3 })
  t.is(({} as { type?: unknown }).type, undefined)
})

test('P32 the server survives a frame nested half a million levels deep', async (t) => {
  const { server, first, agent } = await twoHosts(t)
  agent.socket.send(`{"type":"X","id":"deep","a":${'['.repeat(500_000)}${']'.repeat(500_000)}}`)
  const back = await ScriptedAgent.link(server, first)
  await back.settled()
  t.pass()
})

test('P21 P22 P28 repeated, skipped or late sequences are dropped: only output sent in order is stored', async (t) => {
  const { server, agent, other, taskId, otherTask } = await twoHosts(t)
  const sends: [number, string][] = [
    [0, 'a'],
    [0, 'A'],
    [2, 'C'],
    [2 ** 53 - 1, 'Z'],
    [1, 'b'],
    [0, 'A'],
    [5, 'F'],
    [2, 'c'],
    [1, 'B'],
  ]
  for (const [sequence, data] of sends) agent.output(taskId, sequence, data)
  await agent.acknowledged(taskId, 2)
  agent.complete(taskId, 3, { lastSequence: 2 ** 53 - 1 })
  agent.complete(taskId, 4, { lastSequence: 99 })
  await agent.settled()
  t.is(
    (await task(server, taskId)).results[0]?.status,
    'RUNNING',
    'an end beyond the received output does not settle',
  )
  agent.complete(taskId, 5, { lastSequence: 2 })
  agent.complete(taskId, 6, { lastSequence: 2 })
  await agent.released(taskId)
  agent.output(taskId, 3, 'late')
  agent.complete(taskId, 7, { lastSequence: 3 })
  await agent.released(taskId)
  await agent.released(taskId)
  const { results } = await finished(server, taskId)
  t.like(results[0], { exitCode: 5, stdoutBytes: 3, outputComplete: true, lateResult: null })
  const { entries } = await server.data('GET', `/api/tasks/${taskId}/logs`)
  t.is(entries.map(({ data }: { data: string }) => data).join(''), 'abc')
  other.complete(otherTask, 0, { lastSequence: -1 })
  t.is((await finished(server, otherTask)).status, 'SUCCESS')
})

test('P30 frames for a task not sent to this host are refused, and frames of an earlier link are void', async (t) => {
  const { server, first, second, agent, otherTask } = await twoHosts(t)
  const waiting = await startTask(server, [first.hostId, second.hostId], { strategy: 'SEQUENTIAL' })
  const other = await ScriptedAgent.link(server, second, {
    tasks: [{ taskId: otherTask, state: 'RUNNING', lastSequence: -1 }],
  })
  await agent.execution(waiting)
  other.output(waiting, 0, 'not yet mine')
  t.is((await other.next('ERROR')).code, 403)
  other.complete(waiting, 0)
  t.is((await other.next('ERROR')).code, 403)
  t.like((await task(server, waiting)).results[1], { status: 'PENDING', exitCode: null })
  const newer = await ScriptedAgent.link(server, first, {
    tasks: [{ taskId: waiting, state: 'RUNNING', lastSequence: -1 }],
  })
  agent.complete(waiting, 9, { lastSequence: -1 })
  t.is((await agent.closed).code, 4409)
  newer.complete(waiting, 0, { lastSequence: -1 })
  await other.execution(waiting)
  other.complete(waiting, 0, { lastSequence: -1 })
  t.is((await finished(server, waiting)).status, 'SUCCESS')
})

test('no input from an agent stops the server or another host', async (t) => {
  const { server, agent, other, taskId, otherTask } = await twoHosts(t)
  const goods = Object.entries(messages).map(([type, { good }]) => ({
    type,
    id: 'fuzz',
    timestamp: at,
    payload: 'taskId' in good ? { ...good, taskId } : good,
  }))
  const frames = fc.constantFrom(...goods, { type: 'ERROR', id: 'fuzz', payload: { code: 1, message: 'x' } })
  let [link, own, hosts] = [agent, taskId, 2]
  /** Moves to a new host, because the server tolerates a limited number of such frames per host. */
  async function nextHost(): Promise<void> {
    hosts++
    const identity = await server.enroll(`web${hosts}`)
    link = await ScriptedAgent.link(server, identity)
    own = await startTask(server, [identity.hostId])
    await link.execution(own)
  }
  await fc.assert(
    fc.asyncProperty(fc.array(frames.chain(badBodies), { minLength: 1, maxLength: 20 }), async (texts) => {
      if (link.socket.readyState !== link.socket.OPEN) await nextHost()
      for (const text of texts) link.socket.send(text.replaceAll(taskId, own))
      const settled = await Promise.race([
        link.settled().then(() => 'open'),
        link.closed.then(({ code }) => code),
      ])
      if (settled !== 'open' && settled !== 4400 && settled !== 1009)
        throw new Error(`closed with ${settled}`)
    }),
    { numRuns: 150 },
  )
  t.is((await task(server, otherTask)).results[0]?.status, 'RUNNING')
  other.complete(otherTask, 0, { lastSequence: -1 })
  t.is((await finished(server, otherTask)).status, 'SUCCESS')
})

test('P28 a LOST host that returns with output and an end during its task is acknowledged and released', async (t) => {
  const server = await startTestServer(t)
  const [first, second] = [await server.enroll('web1'), await server.enroll('web2')]
  const agent = await ScriptedAgent.link(server, first)
  const other = await ScriptedAgent.link(server, second)
  const taskId = await startTask(server, [first.hostId, second.hostId])
  await agent.execution(taskId)
  await other.execution(taskId)
  agent.output(taskId, 0, 'stored')
  await agent.acknowledged(taskId, 0)
  await agent.cut()
  const back = await ScriptedAgent.link(server, first, { storeId: 'store-2' })
  await back.settled()
  await counted(server, taskId, ({ LOST }) => LOST === 1)
  for (const sequence of [1, 2]) back.output(taskId, sequence, 'late')
  await back.acknowledged(taskId, 2)
  back.complete(taskId, 4, { lastSequence: 2 })
  await back.released(taskId)
  const [lost] = (await task(server, taskId)).results
  t.like(lost, { status: 'LOST', exitCode: null, outputComplete: false })
  t.like(lost?.lateResult, { status: 'FAILED', exitCode: 4 })
  other.complete(taskId, 0, { lastSequence: -1 })
  t.is((await finished(server, taskId)).results[0]?.lateResult?.exitCode, 4)
})
