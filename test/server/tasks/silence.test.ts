import test, { type ExecutionContext } from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask, task } from '../../helpers/clients/tasks.ts'
import { ShiftedClock } from '../../helpers/faults/shifted-clock.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

async function oneAgent(t: ExecutionContext) {
  const clock = new ShiftedClock()
  const server = await startTestServer(t, { clock })
  // A session would expire in the hours that the clock is advanced.
  server.token = (await server.data('POST', '/api/tokens', { name: 'days', admin: true })).token
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  await agent.settled()
  return { clock, server, identity, agent }
}

const minutes = 60

test("queueSeconds count from a host's turn: one task gives the host up, another keeps waiting", async (t) => {
  const { clock, server, identity, agent } = await oneAgent(t)
  await agent.cut()
  const host = () => server.data('GET', `/api/hosts/${identity.hostId}`)
  await until('the link is gone', async () => (await host()).agent.connected === false)
  const patient = await startTask(server, [identity.hostId], { queueSeconds: 3600 })
  const brief = await startTask(server, [identity.hostId], { queueSeconds: 100 })
  clock.forward(200)
  const [given] = (await finished(server, brief)).results
  t.is(given?.status, 'UNREACHABLE')
  t.is((await task(server, patient)).results[0]?.status, 'PENDING')
  const back = await ScriptedAgent.link(server, identity)
  await back.execution(patient)
  back.complete(patient, 0, { lastSequence: -1 })
  t.is((await finished(server, patient)).status, 'SUCCESS')
  t.false(back.heard.some(({ type, payload }) => type === 'EXECUTE_SCRIPT' && payload.taskId === brief))
})

test('P13 F12 five minutes after three replacements links are accepted again, with status and audit entry', async (t) => {
  const { clock, server, identity } = await oneAgent(t)
  for (let n = 0; n < 3; n++) await (await ScriptedAgent.link(server, identity)).settled()
  await t.throwsAsync(ScriptedAgent.link(server, identity), { message: /409/ })
  clock.forward(4 * minutes)
  // The clock of the links advances as well: the current link counts as dead, so that a new one may be opened.
  clock.forward(minutes + 1)
  const again = await ScriptedAgent.link(server, identity)
  await again.settled()
  await until('the audit log has the entry', async () => {
    const { content } = await server.data('GET', '/api/audit?action=agent.duplicate')
    return content.at(-1)?.detail.duplicate === true
  })
})
