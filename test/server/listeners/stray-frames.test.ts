import test from 'ava'
import { createStrayAllowance, StrayFrames } from '../../../src/server/listeners/link-bounds.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

test('P31 S10 an agent that keeps sending stray frames is closed with 4400, even over its next link, and audited once', async (t) => {
  const server = await startTestServer(t)
  const [first, second] = [await server.enroll('web1'), await server.enroll('web2')]
  const other = await ScriptedAgent.link(server, second)
  for (let link = 0; link < 2; link++) {
    const agent = await ScriptedAgent.link(server, first)
    for (let n = 0; n < 2000; n++) agent.socket.send(`{"type":"NOSUCH","id":"${n}","payload":{}}`)
    t.like(await agent.closed, { code: 4400, reason: 'too many stray frames' })
  }
  const taskId = await startTask(server, [second.hostId])
  await other.execution(taskId)
  other.complete(taskId, 0, { lastSequence: -1 })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
  const noted = () => server.data('GET', '/api/audit?action=agent.frame')
  await until('it is audited', async () => (await noted()).totalElements > 0)
  const { content } = await noted()
  t.is(content.length, 1)
  t.like(content[0], {
    actor: { type: 'agent', id: first.agentId },
    object: { type: 'agent', id: first.agentId },
    outcome: 'REFUSED',
  })
})

for (const [what, frame] of [
  [
    'one task of another host',
    (taskId: string) => ({ type: 'SCRIPT_RECEIVED', payload: { taskId, journal: { sequence: 1 } } }),
  ],
  ['one unknown session', () => ({ type: 'TERMINAL_OUTPUT', payload: { sessionId: 's1', data: 'x' } })],
] as const)
  test(`P30 P35 an agent that keeps sending ${what} is closed with 4400`, async (t) => {
    const server = await startTestServer(t)
    const [first, second] = [await server.enroll('web1'), await server.enroll('web2')]
    const agent = await ScriptedAgent.link(server, first)
    const other = await ScriptedAgent.link(server, second)
    const taskId = await startTask(server, [second.hostId])
    await other.execution(taskId)
    for (let n = 0; n < 4000; n++) agent.socket.send(JSON.stringify({ ...frame(taskId), id: `${n}` }))
    t.is((await agent.closed).code, 4400)
  })

test('P29 all pending frames of a task unknown to a restored server count as one stray frame', (t) => {
  const strays = new StrayFrames(createStrayAllowance(), 'a1')
  const onTheWay = 1024
  for (let task = 0; task < 64; task++)
    for (let frame = 0; frame < onTheWay; frame++) t.true(strays.take(`task-${task}`, 0))
  for (let n = 64; n < 600; n++) t.true(strays.take(null, 0))
  t.false(strays.take(null, 0))
})

test('stray frames are counted by agent, and each minute allows 600 more', (t) => {
  const allowance = createStrayAllowance()
  const [first, again, other] = ['a1', 'a1', 'a2'].map((agentId) => new StrayFrames(allowance, agentId))
  for (let n = 0; n < 600; n++) first?.take(null, 0)
  t.is(again?.take(null, 0), false)
  t.is(other?.take(null, 0), true)
  const after = Array.from({ length: 601 }, () => again?.take(null, 60_000))
  t.deepEqual([after.indexOf(false), after.lastIndexOf(true)], [600, 599])
})
