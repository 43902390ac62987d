import test from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { followEvents, textOf } from '../../helpers/clients/follow.ts'
import { startTask } from '../../helpers/clients/tasks.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'

const followers = 500
const chunks = 40
/** MB. The output is 2.5 MB: 500 copies of it would take 1.3 GB, and a read buffer for each follower 250 MB. */
const mayGrow = 120

test('F15 500 followers of one task get all output, and the memory of the server stays small', async (t) => {
  t.timeout(300_000)
  const server = await startServerProcess(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  const taskId = await startTask(server, [identity.hostId])
  await agent.execution(taskId)
  const url = `${server.url}/api/tasks/${taskId}/logs?follow=true`
  const headers = { authorization: `Bearer ${server.token}` }
  const before = await server.memory()
  const following = Array.from({ length: followers }, async () => {
    const events = await followEvents(url, headers)
    return { length: textOf(events).length, last: events.at(-1)?.event }
  })
  const chunk = 'x'.repeat(64 * 1024)
  for (let n = 0; n < chunks; n += 1) agent.output(taskId, n, chunk)
  agent.complete(taskId, 0, { lastSequence: chunks - 1 })
  await agent.released(taskId)
  for (const { length, last } of await Promise.all(following)) {
    t.is(length, chunks * chunk.length)
    t.is(last, 'end')
  }
  const grown = (await server.memory()) - before
  t.log(`${grown.toFixed(1)} MB for ${followers} followers`)
  t.true(grown < mayGrow, `${grown} MB`)
})
