import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { ExecutionContext, TestFn } from 'ava'
import type { LogEntry } from '../../src/core/protocol/http/logs.ts'
import type { ScriptComplete } from '../../src/core/protocol/messages.ts'
import { temporaryDirectory } from '../helpers/agents/agent.ts'
import { realAgent } from '../helpers/agents/real-agent.ts'
import { ScriptedAgent } from '../helpers/agents/scripted-agent.ts'
import { followEvents } from '../helpers/clients/follow.ts'
import { entries, finished, startTask, task } from '../helpers/clients/tasks.ts'
import type { TestServer } from '../helpers/servers/server.ts'
import type { ServerProcess } from '../helpers/servers/server-process.ts'
import { until } from '../helpers/until.ts'

const capabilities = { gates: true }
const check = { script: { content: 'exit 3' }, retries: 2, intervalSeconds: 7, timeout: 20 }
const undo = { script: { content: 'undo', timeout: 30 } }
const failed: Partial<ScriptComplete> = {
  status: 'FAILED',
  error: 'verification failed: exit code 3 (the last of 3 attempts)',
  verify: { status: 'FAILED', exitCode: 3, attempts: 3 },
  rollback: { status: 'SUCCESS', exitCode: 0 },
}

/** Waits until the results show this phase. */
const inPhase = (server: TestServer, taskId: string, phase: string) =>
  until(`it is in ${phase}`, async () => (await task(server, taskId)).results[0]?.phase === phase)

async function linked(server: TestServer, hostname = 'web1') {
  const identity = await server.enroll(hostname)
  const agent = await ScriptedAgent.link(server, identity, { capabilities })
  await agent.settled()
  return { identity, agent }
}

/** Gates on servers with any kind of store (contract §15). */
export function gatesContract(
  test: TestFn,
  name: string,
  start: (t: ExecutionContext) => Promise<TestServer>,
): void {
  test(`P55 ${name} gates: one signed message orders all phases, and the result is final with the last phase`, async (t) => {
    const server = await start(t)
    const { identity, agent } = await linked(server)
    const options = { script: { content: 'deploy' }, params: { A: 'a' }, verify: check, rollback: undo }
    const taskId = await startTask(server, [identity.hostId], options)
    const sent = await agent.execution(taskId)
    t.is(sent.script, 'deploy')
    t.deepEqual(sent.verify, {
      script: 'exit 3',
      scriptType: 'BASH',
      timeout: 20,
      retries: 2,
      intervalSeconds: 7,
    })
    t.deepEqual(sent.rollback, { script: 'undo', scriptType: 'BASH', timeout: 30 })
    const [before] = (await task(server, taskId)).results
    t.like(before, { status: 'RUNNING', phase: 'SCRIPT', verify: null, rollback: null })
    agent.output(taskId, 0, 'deployed\n')
    agent.send('SCRIPT_PHASE', { taskId, phase: 'VERIFY' })
    await inPhase(server, taskId, 'VERIFY')
    agent.send('SCRIPT_OUTPUT', { taskId, stream: 'stderr', data: 'sick\n', sequence: 1, phase: 'VERIFY' })
    const { url, token } = server
    const following = followEvents(
      `${url}/api/tasks/${taskId}/logs?follow=true`,
      { authorization: `Bearer ${token}` },
      ({ event }) => event === 'end',
    )
    agent.send('SCRIPT_PHASE', { taskId, phase: 'ROLLBACK' })
    await inPhase(server, taskId, 'ROLLBACK')
    agent.send('SCRIPT_OUTPUT', {
      taskId,
      stream: 'stdout',
      data: 'undone\n',
      sequence: 2,
      phase: 'ROLLBACK',
    })
    agent.complete(taskId, 3, { ...failed, lastSequence: 2 })
    const ended = await finished(server, taskId)
    const expected = { status: 'FAILED', exitCode: 3, phase: null, error: failed.error ?? null }
    t.like(ended.results[0], expected)
    t.deepEqual(ended.results[0]?.verify, failed.verify ?? null)
    t.deepEqual(ended.results[0]?.rollback, failed.rollback ?? null)
    t.like(ended.verify, { firstLine: 'exit 3', retries: 2, intervalSeconds: 7, timeout: 20, type: 'BASH' })
    t.like(ended.rollback, { firstLine: 'undo', timeout: 30 })
    const log = (await entries(server, taskId)) as unknown as LogEntry[]
    t.deepEqual(
      log.map(({ stream, data, phase }) => [stream, data, phase]),
      [
        ['stdout', 'deployed\n', undefined],
        ['stderr', 'sick\n', 'VERIFY'],
        ['stdout', 'undone\n', 'ROLLBACK'],
      ],
    )
    const followed = (await following).flatMap(({ event, data }) => (event === 'output' ? [data.phase] : []))
    t.deepEqual(followed, [undefined, 'VERIFY', 'ROLLBACK'])
  })

  test(`${name} gates: a retry runs the same gates, and their texts are shown after the end`, async (t) => {
    const server = await start(t)
    const { identity, agent } = await linked(server)
    const { id: scriptId } = await server.data('POST', '/api/scripts', {
      name: 'is-well',
      content: '#!/bin/bash\n# rsm: param PORT default=8000\nexit 3',
      type: 'BASH',
      timeout: 11,
    })
    const verify = { scriptId, retries: 2 }
    const taskId = await startTask(server, [identity.hostId], { verify, rollback: undo })
    const first = await agent.execution(taskId)
    t.is(first.params['PORT'], '8000')
    t.like(first.verify, { timeout: 11, intervalSeconds: 5, retries: 2 })
    agent.complete(taskId, 3, { ...failed, lastSequence: -1 })
    await finished(server, taskId)
    await server.data('DELETE', `/api/scripts/${scriptId}`)
    const text = await server.data('GET', `/api/tasks/${taskId}/script`)
    t.is(text.content, 'true')
    t.regex(text.verify.content, /exit 3$/)
    t.is(text.rollback.content, 'undo')
    t.like((await task(server, taskId)).verify, { scriptId, scriptName: 'is-well', scriptVersion: 1 })
    const { taskId: again } = await server.data('POST', `/api/tasks/${taskId}/retry`, {})
    const second = await agent.execution(again)
    t.deepEqual([second.script, second.verify, second.rollback], [first.script, first.verify, first.rollback])
    agent.complete(again, 0, {
      status: 'SUCCESS',
      verify: { status: 'SUCCESS', exitCode: 0, attempts: 1 },
      lastSequence: -1,
    })
    const ended = await finished(server, again)
    t.like(ended, { status: 'SUCCESS' })
    t.deepEqual(ended.results[0]?.verify, { status: 'SUCCESS', exitCode: 0, attempts: 1 })
  })

  test(`P55 ${name} gates: agents without support for gates are sent nothing`, async (t) => {
    const server = await start(t)
    for (const [hostname, storeId] of [
      ['older', 'store-1'],
      ['base', null],
    ] as const) {
      const identity = await server.enroll(hostname)
      const agent = await ScriptedAgent.link(server, identity, { storeId })
      const taskId = await startTask(server, [identity.hostId], { rollback: undo })
      const [result] = (await finished(server, taskId)).results
      t.like(result, { status: 'FAILED', exitCode: 126, rollback: null })
      t.regex(result?.error ?? '', /too old to verify or roll back/)
      await agent.settled()
      t.false(agent.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
    }
  })

  test(`P56 ${name} gates: a HELLO reports the phase too, and an unknown verification has no exit code`, async (t) => {
    const server = await start(t)
    const { identity, agent } = await linked(server)
    const taskId = await startTask(server, [identity.hostId], { verify: check })
    await agent.execution(taskId)
    await agent.cut()
    const again = await ScriptedAgent.link(server, identity, {
      capabilities,
      tasks: [{ taskId, state: 'RUNNING', lastSequence: -1, phase: 'VERIFY' }],
    })
    await inPhase(server, taskId, 'VERIFY')
    const verify = { status: 'FAILED', exitCode: null, attempts: 3 } as const
    const end = { status: 'FAILED', verify, error: 'verification failed: gone', lastSequence: -1 } as const
    again.complete(taskId, 255, end)
    const [result] = (await finished(server, taskId)).results
    t.like(result, { status: 'FAILED', exitCode: null, error: 'verification failed: gone' })
    again.complete(taskId, 255, end)
    await again.settled()
    t.is((await task(server, taskId)).results[0]?.lateResult, null)
  })

  test(`P56 ${name} gates: phases only advance, and an execution without gates has none`, async (t) => {
    const server = await start(t)
    const { identity, agent } = await linked(server)
    const target = [identity.hostId]
    const gated = await startTask(server, target, { verify: check, rollback: undo })
    const verified = await startTask(server, target, { verify: check })
    const bare = await startTask(server, target)
    for (const taskId of [gated, verified, bare]) {
      await agent.execution(taskId)
      for (const phase of ['VERIFY', 'ROLLBACK', 'VERIFY', 'SCRIPT'] as const)
        agent.send('SCRIPT_PHASE', { taskId, phase })
    }
    await inPhase(server, gated, 'ROLLBACK')
    await inPhase(server, verified, 'VERIFY')
    for (const taskId of [gated, verified, bare]) agent.output(taskId, 0, 'x')
    await agent.acknowledged(bare, 0)
    const phaseOf = async (taskId: string) => (await task(server, taskId)).results[0]?.phase
    t.deepEqual(
      [await phaseOf(gated), await phaseOf(verified), await phaseOf(bare)],
      ['ROLLBACK', 'VERIFY', 'SCRIPT'],
    )
  })

  test(`A01 P48 ${name} gates: noStart answers a HELLO for an ended task, an earlier phase, or a duplicate agent`, async (t) => {
    const server = await start(t)
    const { identity, agent } = await linked(server)
    const begin = () =>
      startTask(server, [identity.hostId], { script: { content: 'deploy' }, verify: check, rollback: undo })
    const [ended, further, open] = [await begin(), await begin(), await begin()]
    for (const taskId of [ended, further, open]) await agent.execution(taskId)
    agent.complete(ended, 0, { lastSequence: -1, verify: { status: 'SUCCESS', exitCode: 0, attempts: 1 } })
    agent.send('SCRIPT_PHASE', { taskId: further, phase: 'ROLLBACK' })
    await finished(server, ended)
    await inPhase(server, further, 'ROLLBACK')
    await agent.cut()
    const tasks = [ended, further, open].map((taskId) => ({
      taskId,
      state: 'RUNNING',
      lastSequence: -1,
      phase: 'VERIFY',
    }))
    const answers = async () => {
      const next = await ScriptedAgent.link(server, identity, { capabilities, tasks })
      const acks = tasks.map(({ taskId }) => next.next('SCRIPT_ACK', (ack) => ack.taskId === taskId))
      return (await Promise.all(acks)).map(({ noStart = false }) => noStart)
    }
    t.deepEqual(await answers(), [true, true, false])
    t.deepEqual(await answers(), [true, true, false])
    t.deepEqual(await answers(), [true, true, false])
    t.deepEqual(await answers(), [true, true, true])
  })

  test(`${name} gates: a failed verification stops a sequential deploy at its canary, and only that host is rolled back`, async (t) => {
    const server = await start(t)
    const traces = await temporaryDirectory(t)
    const agents = [
      await realAgent(t, server, { hostname: 'a' }),
      await realAgent(t, server, { hostname: 'b' }),
    ]
    const taskId = await startTask(
      server,
      agents.map(({ hostId }) => hostId),
      {
        strategy: 'SEQUENTIAL',
        script: { content: `echo $RSM_HOST >> ${traces}/deployed` },
        verify: { script: { content: 'exit 9' }, retries: 1, intervalSeconds: 0 },
        rollback: { script: { content: `echo $RSM_HOST $RSM_EXIT_CODE >> ${traces}/undone` } },
      },
    )
    const { results } = await finished(server, taskId)
    t.deepEqual(
      results.map(({ status }) => status),
      ['FAILED', 'SKIPPED'],
    )
    t.is(results[1]?.rollback, null)
    t.is(readFileSync(`${traces}/deployed`, 'utf8'), 'a\n')
    t.is(readFileSync(`${traces}/undone`, 'utf8'), 'a 9\n')
  })
}

/** Gates in progress when a server is killed. */
export function killedGatesContract(
  test: TestFn,
  name: string,
  start: (t: ExecutionContext) => Promise<ServerProcess>,
): void {
  test(`${name} gates: a server killed during VERIFY continues with the phase and all output`, async (t) => {
    const server = await start(t)
    const traces = await temporaryDirectory(t)
    const agent = await realAgent(t, server)
    const wait = `until [ -e ${traces}/go ] || [ ! -d ${traces} ]; do sleep 0.05; done`
    const taskId = await startTask(server, [agent.hostId], {
      script: { content: `printf s >> ${traces}/starts; echo one` },
      verify: { script: { content: `printf v >> ${traces}/starts; echo two; ${wait}; exit 4` } },
      rollback: { script: { content: `printf r >> ${traces}/starts; echo three` } },
    })
    const starts = () => (existsSync(`${traces}/starts`) ? readFileSync(`${traces}/starts`, 'utf8') : '')
    await inPhase(server, taskId, 'VERIFY')
    await until('it verifies', () => starts() === 'sv')
    await server.kill()
    await server.start()
    t.is((await task(server, taskId)).results[0]?.phase, 'VERIFY')
    writeFileSync(`${traces}/go`, '')
    const [result] = (await finished(server, taskId)).results
    t.like(result, { status: 'FAILED', exitCode: 4, outputComplete: true })
    t.deepEqual(result?.rollback, { status: 'SUCCESS', exitCode: 0 })
    t.is(starts(), 'svr')
    const log = (await entries(server, taskId)) as unknown as LogEntry[]
    t.deepEqual(
      log.map(({ phase = 'SCRIPT', data }) => `${phase} ${data}`),
      ['SCRIPT one\n', 'VERIFY two\n', 'ROLLBACK three\n'],
    )
  })
}
