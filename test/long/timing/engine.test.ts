import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { followEvents } from '../../helpers/clients/follow.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

/** A task that runs on one host. */
async function running(t: ExecutionContext) {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const { hostId } = identity
  const agent = await ScriptedAgent.link(server, identity)
  const taskId = await startTask(server, [hostId])
  await agent.execution(taskId)
  return { server, hostId, agent, taskId, log: `/api/tasks/${taskId}/logs?follow=true` }
}

test('F15 a task with 13 MB of output ends within 15 s even if its followers read nothing', async (t) => {
  const { server, agent, taskId, log } = await running(t)
  const { hostname, port } = new URL(server.url)
  for (let n = 0; n < 3; n++) {
    const socket = connect(Number(port), hostname)
    socket.pause()
    socket.write(`GET ${log} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.token}\r\n\r\n`)
    t.teardown(() => socket.destroy())
  }
  for (let n = 0; n < 200; n++) agent.output(taskId, n, 'x'.repeat(64 * 1024))
  agent.complete(taskId, 0, { lastSequence: 199 })
  const { status, duration } = await finished(server, taskId)
  t.is(status, 'SUCCESS')
  t.true((duration ?? Number.POSITIVE_INFINITY) < 15_000, `${duration} ms`)
})

test('F17 a stop does not wait for followers, links or callers with async:false', async (t) => {
  const { server, hostId, agent, log } = await running(t)
  const begun = new EventEmitter()
  const headers = { authorization: `Bearer ${server.token}` }
  const following = followEvents(`${server.url}${log}`, headers, () => !begun.emit('event'))
  await once(begun, 'event')
  const calling = startTask(server, [hostId], { async: false })
  const refused = t.throwsAsync(calling, { message: /503/ })
  await agent.execution()
  const began = performance.now()
  await server.stop()
  const took = performance.now() - began
  // Connections that it would wait for are closed after 5 s.
  t.true(took < 5_000, `${took} ms`)
  await Promise.all([following, refused])
})

test('a host that was never heard is UNREACHABLE at once, a host without a link after queueSeconds', async (t) => {
  const server = await startTestServer(t)
  const { id } = await server.data('POST', '/api/hosts', { hostname: 'silent', ip: '192.0.2.1' })
  const { hostId } = await server.enroll('web1')
  for (const [host, options, least, most] of [
    [id, {}, 0, 2_000],
    [hostId, { queueSeconds: 1 }, 1_000, 2_500],
  ] as const) {
    const { results, duration } = await finished(server, await startTask(server, [host], options))
    t.is(results[0]?.status, 'UNREACHABLE')
    t.true(duration !== null && duration >= least && duration < most, `${duration} ms`)
  }
})
