import test, { type ExecutionContext } from 'ava'
import { type Clock as AgentClock, systemClock } from '../../../src/agent/clock.ts'
import { startAgent } from '../../../src/agent/main.ts'
import { agentOptions, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { finished, running, startTask } from '../../helpers/clients/tasks.ts'
import { adminLogin, startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const day = 86_400_000

/** A clock whose time of day can be stepped; monotonic time keeps running. */
function steppingClock(): AgentClock & { step: number } {
  return { ...systemClock, step: 0, now: () => 0 }
}

function stepping() {
  const clock = steppingClock()
  clock.now = () => Date.now() + clock.step
  return clock
}

/** A server and an agent in this process, each with a clock that can be stepped. */
async function pair(t: ExecutionContext) {
  const serverClock = stepping()
  const agentClock = stepping()
  const server = await startTestServer(t, { clock: serverClock, heartbeatInterval: 1, metricsInterval: 1 })
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', {})
  const dataDir = await temporaryDirectory(t)
  const agent = await startAgent({ ...agentOptions(server, dataDir), enrollToken, clock: agentClock })
  t.teardown(() => agent.stop())
  const hostId = agent.hostId ?? 0
  await until('the agent is linked', () => agent.linked())
  return { server, agent, hostId, serverClock, agentClock }
}

/** Sessions end by the time of day, so after a step forward the user logs in again. */
async function logIn(server: TestServer): Promise<void> {
  server.token = ''
  server.token = (await server.data('POST', '/api/auth/login', adminLogin)).token
}

for (const [whose, step] of [
  ['server', day],
  ['server', -day],
  ['agent', day],
  ['agent', -day],
] as const)
  test(`F13 a step of the ${whose}'s clock by ${step / day} day during a script causes no wrong result, time or OFFLINE`, async (t) => {
    const { server, hostId, serverClock, agentClock } = await pair(t)
    const script = 'echo up; sleep 2; echo end; exit 3'
    const taskId = await startTask(server, [hostId], { script: { content: script }, timeout: 120 })
    await running(server, taskId)
    ;(whose === 'server' ? serverClock : agentClock).step = step
    await logIn(server)
    const [result] = (await finished(server, taskId)).results
    t.is(result?.status, 'FAILED')
    t.is(result?.exitCode, 3)
    const duration = result?.duration ?? -1
    t.true(duration >= 1_900 && duration < 100_000, `${duration} ms`)
    t.true((result?.completedAt ?? '') >= (result?.startedAt ?? '~'))
    const again = await startTask(server, [hostId], { script: { content: 'echo after' } })
    t.is((await finished(server, again)).status, 'SUCCESS', 'signatures made after the step are valid')
    const cancelled = await startTask(server, [hostId], { script: { content: 'sleep 600' } })
    await running(server, cancelled)
    ;(whose === 'server' ? serverClock : agentClock).step = 0
    await logIn(server)
    await server.data('POST', `/api/tasks/${cancelled}/cancel`)
    const stopped = await finished(server, cancelled)
    t.is(stopped.status, 'CANCELLED')
    t.true((stopped.duration ?? -1) >= 0)
    t.true((stopped.completedAt ?? '') >= (stopped.startedAt ?? '~'))
    t.true((stopped.results[0]?.completedAt ?? '') >= (stopped.results[0]?.startedAt ?? '~'))
    t.is((await server.data('GET', `/api/hosts/${hostId}`)).agent.connected, true)
    t.not((await server.data('GET', `/api/hosts/${hostId}`)).status, 'OFFLINE')
  })

for (const whose of ['server', 'agent'] as const)
  test(`F13 metrics are still updated after the ${whose}'s clock was set back by a day`, async (t) => {
    const { server, hostId, serverClock, agentClock } = await pair(t)
    const shown = async () => (await server.data('GET', `/api/hosts/${hostId}`)).metrics?.timestamp as string
    await until('the first report', async () => (await shown()) !== undefined)
    ;(whose === 'server' ? serverClock : agentClock).step = -day
    const before = await shown()
    // One report may have been in transit: two changes show that later reports count.
    await until('a report after the step', async () => (await shown()) !== before)
    const next = await shown()
    await until('the next report', async () => (await shown()) !== next)
    t.pass()
  })

for (const step of [day, -day])
  test(`F13 a pause between batches keeps its length when the server's clock steps by ${step / day} day`, async (t) => {
    const { server, hostId, serverClock } = await pair(t)
    const other = await server.enroll('never-there')
    const taskId = await startTask(server, [hostId, other.hostId], {
      strategy: 'ROLLING',
      batchSize: 1,
      pauseSeconds: 8,
      maxFailures: '100%',
    })
    const ended = async (at: number) =>
      (await server.data('GET', `/api/tasks/${taskId}`)).results[at]?.completedAt !== null
    await until('the first batch', () => ended(0))
    const began = performance.now()
    serverClock.step = step
    await logIn(server)
    await until('the second batch', () => ended(1))
    const took = performance.now() - began
    t.true(took > 5_000 && took < 15_000, `${took} ms`)
  })
