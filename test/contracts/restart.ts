import type { ExecutionContext, TestFn } from 'ava'
import { ScriptedAgent } from '../helpers/agents/scripted-agent.ts'
import { followEvents, textOf } from '../helpers/clients/follow.ts'
import { entries, finished, startTask, statusesOf } from '../helpers/clients/tasks.ts'
import type { TestServer } from '../helpers/servers/server.ts'

/** A server that is restarted, however it ended. */
export function restartContract(
  test: TestFn,
  how: string,
  start: (t: ExecutionContext) => Promise<TestServer>,
): void {
  test(`P34 F07 a server that is ${how} during a task continues it with exact output and sequences`, async (t) => {
    const server = await start(t)
    const identity = await server.enroll('web1')
    const agent = await ScriptedAgent.link(server, identity)
    const taskId = await startTask(server, [identity.hostId])
    await agent.execution(taskId)
    for (let n = 0; n < 50; n++) agent.output(taskId, n, `${n};`)
    await agent.acknowledged(taskId, 20)
    await server.restart()
    await agent.closed
    const again = await ScriptedAgent.link(server, identity, {
      tasks: [{ taskId, state: 'RUNNING', lastSequence: 49 }],
    })
    const { sequence = -1 } = await again.next('SCRIPT_ACK')
    t.true(sequence >= 20)
    for (let n = sequence + 1; n < 80; n++) again.output(taskId, n, `${n};`)
    again.complete(taskId, 0, { lastSequence: 79 })
    const ended = await finished(server, taskId)
    t.is(ended.status, 'SUCCESS')
    const whole = Array.from({ length: 80 }, (_, n) => `${n};`).join('')
    t.is((await entries(server, taskId)).map(({ data }) => data).join(''), whole)
    t.is(ended.results[0]?.stdoutBytes, whole.length)
    t.true(ended.results[0]?.outputComplete)
    t.false(again.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
  })

  test(`F07 a strategy continues where it was when the server is ${how}, twice`, async (t) => {
    const server = await start(t)
    const identities = [await server.enroll('a'), await server.enroll('b'), await server.enroll('c')]
    const link = () => Promise.all(identities.map((identity) => ScriptedAgent.link(server, identity)))
    let agents = await link()
    const taskId = await startTask(
      server,
      identities.map(({ hostId }) => hostId),
      { strategy: 'SEQUENTIAL', maxFailures: 1 },
    )
    for (const [index, exitCode] of [0, 1, 0].entries()) {
      await agents[index]?.execution(taskId)
      agents[index]?.complete(taskId, exitCode, { lastSequence: -1 })
      await agents[index]?.released(taskId)
      if (index === 2) break
      await server.restart()
      agents = await link()
    }
    const ended = await finished(server, taskId)
    t.deepEqual(statusesOf(ended), ['SUCCESS', 'FAILED', 'SUCCESS'])
    t.is(ended.status, 'FAILED')
  })

  test(`F07 a task that ends while the server, ${how}, is down has its true result`, async (t) => {
    const server = await start(t)
    const identity = await server.enroll('web1')
    const agent = await ScriptedAgent.link(server, identity)
    const taskId = await startTask(server, [identity.hostId])
    await agent.execution(taskId)
    await server.restart()
    const again = await ScriptedAgent.link(server, identity, {
      tasks: [{ taskId, state: 'EXITED', lastSequence: 0 }],
    })
    await again.next('SCRIPT_ACK')
    again.output(taskId, 0, 'done meanwhile')
    again.complete(taskId, 9, { lastSequence: 0 })
    const [result] = (await finished(server, taskId)).results
    t.is(result?.exitCode, 9)
    t.is((await entries(server, taskId))[0]?.data, 'done meanwhile')
  })

  test(`F07 a follower of a server that is ${how} resumes exactly where it was`, async (t) => {
    const server = await start(t)
    const identity = await server.enroll('web1')
    const agent = await ScriptedAgent.link(server, identity)
    const taskId = await startTask(server, [identity.hostId])
    await agent.execution(taskId)
    const url = `${server.url}/api/tasks/${taskId}/logs?follow=true`
    const headers = { authorization: `Bearer ${server.token}` }
    for (let n = 0; n < 10; n++) agent.output(taskId, n, `${n};`)
    const seen = await followEvents(url, headers, ({ data }) => data.sequence === 6)
    await agent.acknowledged(taskId, 9)
    await server.restart()
    const again = await ScriptedAgent.link(server, identity, {
      tasks: [{ taskId, state: 'EXITED', lastSequence: 9 }],
    })
    again.complete(taskId, 0, { lastSequence: 9 })
    const rest = await followEvents(url, { ...headers, 'last-event-id': seen.at(-1)?.id ?? '' })
    t.is(textOf(seen) + textOf(rest), '0;1;2;3;4;5;6;7;8;9;')
    t.is(rest.at(-1)?.event, 'end')
  })
}
