import { writeFileSync } from 'node:fs'
import test from 'ava'
import { type Clock, systemClock } from '../../../src/agent/clock.ts'
import { hasty, linkedAgent } from '../../helpers/agents/agent.ts'

test('output is exact over a link that is cut repeatedly while acknowledgements are lost', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  server.acksOutput = false
  const script = `i=0; while [ ! -e ${dataDir}/stop ]; do i=$((i+1)); echo "line $i"; sleep 0.01; done`
  server.execute(agent.agentId, { taskId: 'cut', script })
  for (let cut = 1; cut <= 3; cut += 1) {
    const seen = server.of('cut').frames.length
    await server.until(() => server.of('cut').frames.length > seen, 'more output')
    server.socket?.terminate()
    await server.linked(cut + 1)
  }
  writeFileSync(`${dataDir}/stop`, '')
  server.acksOutput = true
  server.send('SCRIPT_ACK', { taskId: 'cut', sequence: server.stored('cut') })
  const complete = await server.completed('cut')
  const lines = server.text('cut').split('\n').slice(0, -1)
  t.true(lines.length > 10)
  t.deepEqual(
    lines,
    Array.from(lines, (_, at) => `line ${at + 1}`),
  )
  t.is(complete.stdoutBytes, server.text('cut').length)
  t.is(complete.lastSequence, server.stored('cut'))
  for (const frame of server.of('cut').frames)
    t.is(server.of('cut').chunks.get(frame.sequence)?.data, frame.data, 'a chunk sent again is the same')
})

test('F10 an execution that is sent twice runs once', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const request = server.request(agent.agentId, { taskId: 'twice', script: 'echo ran' })
  server.of('twice')
  server.send('EXECUTE_SCRIPT', request)
  server.send('EXECUTE_SCRIPT', request)
  await server.completed('twice')
  server.send('EXECUTE_SCRIPT', request)
  await server.until(() => server.of('twice').completes.length >= 2, 'it is answered again')
  t.is(server.text('twice'), 'ran\n')
  const [first, second] = server.of('twice').completes
  t.is(first?.lastSequence, 0)
  // The same end. Its acknowledged output was removed, so -1 tells the server not to wait for any.
  t.deepEqual<unknown, unknown>(second, { ...first, lastSequence: -1 })
  t.is(server.of('twice').frames.length, 1)
})

test('F10 an agent sends the same result again if the link is cut before it is acknowledged', async (t) => {
  const { server, agent } = await linkedAgent(t)
  server.acksComplete = false
  server.execute(agent.agentId, { taskId: 'unacked', script: 'echo ran; exit 5' })
  await server.completed('unacked')
  server.acksComplete = true
  server.socket?.terminate()
  await server.linked(2)
  t.is(server.hellos[1]?.tasks[0]?.state, 'EXITED')
  await server.until(() => server.of('unacked').completes.length === 2, 'the result arrives again')
  const [first, second] = server.of('unacked').completes
  t.deepEqual(second, first)
  server.socket?.terminate()
  await server.linked(3)
  t.deepEqual(server.hellos[2]?.tasks, [])
})

test('an agent drops a completed task that the server does not know', async (t) => {
  const { server, agent } = await linkedAgent(t)
  server.acksComplete = false
  server.execute(agent.agentId, { taskId: 'forgotten', script: 'true' })
  await server.completed('forgotten')
  server.heard.delete('forgotten')
  server.send('EXECUTE_SCRIPT', server.request(agent.agentId, { taskId: 'unknown', script: 'true' }))
  await server.until(
    () => server.messages.some((m) => m.type === 'SCRIPT_COMPLETE' && m.payload.taskId === 'unknown'),
    'it ends',
  )
  server.execute(agent.agentId, { taskId: 'after', script: 'true' })
  await server.completed('after')
  server.socket?.terminate()
  await server.linked(2)
  t.deepEqual(
    server.hellos[1]?.tasks.map((task) => task.taskId),
    ['forgotten', 'after'],
  )
})

test('P10 P11 the first message is HELLO, and the link offers rsm.1', async (t) => {
  const { server } = await linkedAgent(t)
  t.is(server.messages[0]?.type, 'AGENT_HELLO')
  t.is(server.socket?.protocol, 'rsm.1')
  t.regex(server.hellos[0]?.storeId ?? '', /^[A-Za-z0-9_-]{1,64}$/)
})

test('an invalid message is answered with ERROR, but an ERROR never is', async (t) => {
  const { server, agent } = await linkedAgent(t)
  server.send('NO_SUCH_TYPE', {})
  server.send('CANCEL_SCRIPT', { taskId: 'not/an/id' })
  server.send('ERROR', { nonsense: true })
  server.execute(agent.agentId, { taskId: 'still-fine', script: 'true' })
  await server.completed('still-fine')
  t.deepEqual(
    server.errors.map((error) => error.refId),
    ['s1', 's2'],
  )
  server.sendText('{not json')
  await server.linked(2)
})

test('an agent without terminals answers a request for one with TERMINAL_CLOSED', async (t) => {
  const { server } = await linkedAgent(t, { noTerminal: true })
  const signed = { expiry: '', signature: 'x', keyId: 'k1' }
  server.send('TERMINAL_OPEN', { sessionId: 'term', cols: 80, rows: 24, ...signed })
  await server.until(
    () => server.messages.some((message) => message.type === 'TERMINAL_CLOSED'),
    'it is answered',
  )
  t.false(server.hellos[0]?.capabilities.terminal)
})

test('an agent on demand is linked only while there is work', async (t) => {
  const { server, agent } = await linkedAgent(t, { onDemand: true, idleLink: 3_000, clock: hasty })
  server.intervals = { heartbeatInterval: 1, metricsInterval: 60 }
  server.configVersion = 2
  await server.until(() => server.heartbeats.length > 0, 'a heartbeat')
  t.false(agent.linked())
  server.pendingTasks = [{ taskId: 'asked', type: 'EXECUTE_SCRIPT' }]
  server.configVersion = 3
  t.false(server.hellos.length > 0)
  let greeted = 0
  await server.until(() => {
    // Order at each HELLO, because the link may close before the order is sent over it.
    if (server.hellos.length > greeted)
      server.execute(agent.agentId, { taskId: 'asked', script: 'sleep 0.5; echo ran' })
    greeted = server.hellos.length
    return server.of('asked').completes.length > 0
  }, 'asked is complete')
  server.pendingTasks = []
  await server.until(() => server.socket === null, 'the link is closed')
  t.is(server.text('asked'), 'ran\n')
})

test('an agent on demand also finds work that heartbeat responses do not count', async (t) => {
  const { server, agent } = await linkedAgent(t, { onDemand: true, clock: hasty })
  server.intervals = { heartbeatInterval: 1, metricsInterval: 60 }
  server.configVersion = 2
  await server.until(() => server.heartbeats.length > 3, 'heartbeats')
  t.false(agent.linked())
  server.countsPending = false
  server.pendingTasks = [{ taskId: 'asked', type: 'EXECUTE_SCRIPT' }]
  await server.until(() => server.hellos.length > 0, 'the agent is linked')
})

/** A clock that runs twenty times as fast. */
const fast: Clock = {
  ...systemClock,
  monotonic: () => systemClock.monotonic() * 20,
  after: (delay, run) => systemClock.after(delay / 20, run),
}

test('F11 a link without answers is closed after 30 s, and the agent links again', async (t) => {
  const { server } = await linkedAgent(t, { clock: fast })
  const dead = server.socket
  dead?.pause()
  await server.until(() => server.hellos.length >= 2, 'it links again')
  t.not(server.socket, dead)
})

test('F12 an agent replaced by another with its identity waits before it links again', async (t) => {
  const delays: number[] = []
  const clock: Clock = {
    ...fast,
    after(delay, run) {
      delays.push(delay)
      return fast.after(delay, run)
    },
  }
  const { server } = await linkedAgent(t, { clock, random: () => 0 })
  delays.length = 0
  server.socket?.close(4409)
  await server.linked(2)
  t.true(delays.includes(5_000))
})
