import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import test, { type ExecutionContext } from 'ava'
import { startAgent } from '../../../src/agent/main.ts'
import { agentOptions, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { agentProcess, kill } from '../../helpers/agents/agent-process.ts'
import { crashed } from '../../helpers/faults/fault.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'
import { until } from '../../helpers/until.ts'

async function start(t: ExecutionContext) {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const { agentId } = { agentId: 'agent-under-test' }
  return { server, dataDir, agentId, options: { agentId } }
}

/** Counts its starts in a file, to detect a second one. */
const counted = (dataDir: string, rest: string) => `echo started >> ${dataDir}/starts; ${rest}`
const starts = (dataDir: string) => readFileSync(`${dataDir}/starts`, 'utf8')
const untilGo = (dataDir: string) => `until [ -e ${dataDir}/go ] || [ ! -d ${dataDir} ]; do sleep 0.05; done`

test('F08 an agent killed in mid-script and back before its end gives the true result, all output, one start', async (t) => {
  const { server, dataDir, agentId, options } = await start(t)
  const first = await agentProcess(t, server, dataDir, options)
  await server.linked()
  const script = counted(
    dataDir,
    `echo one; while [ ! -e ${dataDir}/go ]; do sleep 0.05; done; echo two; exit 3`,
  )
  server.execute(agentId, { taskId: 'mid', script })
  await server.until(() => server.text('mid') === 'one\n', 'it runs')
  await kill(first, 'SIGKILL')
  await agentProcess(t, server, dataDir, options)
  await server.linked(2)
  t.deepEqual(server.hellos[1]?.tasks, [{ taskId: 'mid', state: 'RUNNING', lastSequence: 0 }])
  t.is(server.hellos[1]?.storeId, server.hellos[0]?.storeId ?? '')
  writeFileSync(`${dataDir}/go`, '')
  const complete = await server.completed('mid')
  t.is(complete.exitCode, 3)
  t.is(complete.status, 'FAILED')
  t.is(server.text('mid'), 'one\ntwo\n')
  t.is(starts(dataDir), 'started\n')
  t.is(server.registrations, 1)
})

test('F08 an agent killed in mid-script and back after its end gives the true result and all output', async (t) => {
  const { server, dataDir, agentId, options } = await start(t)
  const first = await agentProcess(t, server, dataDir, options)
  await server.linked()
  const script = counted(dataDir, `echo one; ${untilGo(dataDir)}; seq 1 1000; kill -USR1 $$`)
  server.execute(agentId, { taskId: 'after', script })
  await server.until(() => server.text('after') === 'one\n', 'it runs')
  await kill(first, 'SIGKILL')
  writeFileSync(`${dataDir}/go`, '')
  await until('its end is written', () =>
    readFileSync(`${dataDir}/executions/after/exit`, 'latin1').startsWith('138 '),
  )
  await agentProcess(t, server, dataDir, options)
  const complete = await server.completed('after')
  t.is(complete.exitCode, 138)
  t.is(complete.signal, 'SIGUSR1')
  const expected = ['one', ...Array.from({ length: 1000 }, (_, at) => at + 1)].join('\n')
  t.is(server.text('after'), `${expected}\n`)
  t.is(starts(dataDir), 'started\n')
})

for (const fault of ['agent.launch.before', 'agent.spawned.before', 'agent.spawned.after'] as const)
  test(`F08 an agent that is killed at ${fault} has started nothing: the script starts once when it is sent again`, async (t) => {
    const { server, dataDir, agentId, options } = await start(t)
    const first = await agentProcess(t, server, dataDir, options, fault)
    await server.linked()
    const request = { taskId: 'once', script: counted(dataDir, 'echo up; exit 4'), timeout: 0 }
    server.execute(agentId, request)
    await crashed(first)
    await agentProcess(t, server, dataDir, options)
    await server.linked()
    t.false(existsSync(`${dataDir}/starts`))
    t.deepEqual(server.hellos.at(-1)?.tasks, [])
    server.execute(agentId, request)
    const complete = await server.completed('once')
    t.is(complete.exitCode, 4)
    t.is(server.text('once'), 'up\n')
    t.is(starts(dataDir), 'started\n')
  })

test('F08 a script that was killed together with its agent is LOST', async (t) => {
  const { server, dataDir, agentId, options } = await start(t)
  const first = await agentProcess(t, server, dataDir, options)
  await server.linked()
  server.execute(agentId, { taskId: 'gone', script: `echo $PPID $$ > ${dataDir}/pids; echo up; sleep 20` })
  await server.until(() => server.text('gone') === 'up\n', 'it runs')
  await kill(first, 'SIGKILL')
  for (const pid of readFileSync(`${dataDir}/pids`, 'utf8').trim().split(' '))
    process.kill(Number(pid), 'SIGKILL')
  await agentProcess(t, server, dataDir, options)
  const complete = await server.completed('gone')
  t.is(complete.status, 'LOST')
  t.is(server.text('gone'), 'up\n')
})

test('F09 a script interrupted by a reboot of the host is LOST, and the error says why', async (t) => {
  const { server, dataDir, agentId, options } = await start(t)
  const first = await agentProcess(t, server, dataDir, options)
  await server.linked()
  server.execute(agentId, {
    taskId: 'boot',
    script: counted(
      dataDir,
      `echo up; while [ -d ${dataDir} ] && [ ! -e ${dataDir}/go ]; do sleep 0.05; done`,
    ),
  })
  await server.until(() => server.text('boot') === 'up\n', 'it runs')
  await kill(first, 'SIGKILL')
  await agentProcess(t, server, dataDir, { ...options, bootId: 'another-boot' })
  const complete = await server.completed('boot')
  t.is(complete.status, 'LOST')
  t.regex(complete.error ?? '', /restarted/)
  writeFileSync(`${dataDir}/go`, '')
  t.is(starts(dataDir), 'started\n')
})

for (const [how, code, end, expected] of [
  ['was ended by the shutdown', 143, 'kill -TERM $$', { status: 'LOST', exitCode: 255 }],
  ['had ended before the shutdown', 7, 'exit 7', { status: 'FAILED', exitCode: 7, error: null }],
] as const)
  test(`a script that ${how} of a host with a stopped agent is ${expected.status}`, async (t) => {
    const { server, dataDir, agentId, options } = await start(t)
    const first = await agentProcess(t, server, dataDir, options)
    await server.linked()
    const script = counted(dataDir, `echo up; ${untilGo(dataDir)}; ${end}`)
    server.execute(agentId, { taskId: 'boot', script })
    await server.until(() => server.text('boot') === 'up\n', 'it runs')
    await kill(first, 'SIGTERM')
    writeFileSync(`${dataDir}/go`, '')
    const exit = () => readFileSync(`${dataDir}/executions/boot/exit`, 'latin1')
    await until('its end is written', () => exit().startsWith(`${code} `))
    await agentProcess(t, server, dataDir, { ...options, bootId: 'another-boot' })
    const complete = await server.completed('boot')
    t.like(complete, expected)
    t.is(complete.error, expected.status === 'LOST' ? 'the host was restarted while it ran' : null)
    t.is(server.text('boot'), 'up\n')
    t.is(starts(dataDir), 'started\n')
  })

test('a script queued when the agent was killed runs after the restart', async (t) => {
  const { server, dataDir, agentId, options } = await start(t)
  const first = await agentProcess(t, server, dataDir, { ...options, maxExecutions: 1 })
  await server.linked()
  server.execute(agentId, { taskId: 'holds', script: 'echo up; sleep 600' })
  await server.until(() => server.text('holds') === 'up\n', 'the first one runs')
  server.execute(agentId, {
    taskId: 'waits',
    script: counted(dataDir, 'echo ran "$P"'),
    params: { P: 'param' },
  })
  await until('it waits', () => /"received".*"waits"/.test(readFileSync(`${dataDir}/journal`, 'utf8')))
  await kill(first, 'SIGKILL')
  await agentProcess(t, server, dataDir, { ...options, maxExecutions: 1 })
  await server.linked(2)
  t.is(server.hellos[1]?.tasks.find((task) => task.taskId === 'waits')?.state, 'QUEUED')
  server.send('CANCEL_SCRIPT', { taskId: 'holds' })
  await server.completed('waits')
  t.is(server.text('waits'), 'ran param\n')
  t.is(starts(dataDir), 'started\n')
})

test('F18 SIGTERM leaves the script to the next agent', async (t) => {
  const { server, dataDir, agentId, options } = await start(t)
  const first = await agentProcess(t, server, dataDir, options)
  await server.linked()
  server.execute(agentId, {
    taskId: 'left',
    script: `echo up; while [ ! -e ${dataDir}/go ]; do sleep 0.05; done`,
  })
  await server.until(() => server.text('left') === 'up\n', 'it runs')
  await kill(first, 'SIGTERM')
  t.is(first.exitCode, 0)
  writeFileSync(`${dataDir}/go`, '')
  await agentProcess(t, server, dataDir, options)
  t.is((await server.completed('left')).status, 'SUCCESS')
})

test('F18 SIGTERM with drain waits for running scripts, and their results are delivered', async (t) => {
  const { server, dataDir, agentId, options } = await start(t)
  const first = await agentProcess(t, server, dataDir, { ...options, drain: true })
  await server.linked()
  server.execute(agentId, { taskId: 'drained', script: `echo up; ${untilGo(dataDir)}; echo end` })
  await server.until(() => server.text('drained') === 'up\n', 'it runs')
  const ended = kill(first, 'SIGTERM')
  server.send('NO_SUCH_TYPE', {})
  await server.until(() => server.errors.length > 0, 'it still answers')
  t.is(first.exitCode, null)
  writeFileSync(`${dataDir}/go`, '')
  await ended
  t.is(first.exitCode, 0)
  t.is((await server.completed('drained')).status, 'SUCCESS')
  t.is(server.text('drained'), 'up\nend\n')
})

test('F18 orders to a draining agent are queued: a cancel ends one at once, the next agent runs the others once', async (t) => {
  const { server, dataDir, agentId, options } = await start(t)
  const first = await startAgent({ ...agentOptions(server, dataDir), ...options, drain: true })
  t.teardown(() => first.stop())
  await server.linked()
  const script = `echo up; while [ ! -e ${dataDir}/go ]; do sleep 0.05; done`
  server.execute(agentId, { taskId: 'running', script })
  await server.until(() => server.text('running') === 'up\n', 'it runs')
  const draining = first.stop()
  for (const taskId of ['cancelled', 'later'])
    server.execute(agentId, { taskId, script: counted(dataDir, 'echo ran') })
  server.send('CANCEL_SCRIPT', { taskId: 'cancelled' })
  t.is((await server.completed('cancelled')).status, 'CANCELLED')
  t.deepEqual(server.of('running').completes, [])
  t.false(existsSync(`${dataDir}/starts`))
  writeFileSync(`${dataDir}/go`, '')
  await draining
  t.is((await server.completed('running')).status, 'SUCCESS')
  t.deepEqual(server.of('later').completes, [])
  await agentProcess(t, server, dataDir, options)
  t.is((await server.completed('later')).status, 'SUCCESS')
  t.is(server.text('later'), 'ran\n')
  t.is(starts(dataDir), 'started\n')
})

test('F06 a second agent on one data directory fails, naming the pid of the first', async (t) => {
  const { server, dataDir, options } = await start(t)
  const first = await agentProcess(t, server, dataDir, options)
  await t.throwsAsync(startAgent({ ...agentOptions(server, dataDir), ...options }), {
    message: new RegExp(`in use by pid ${first.pid}`),
  })
})

test('a timeout on one agent does not affect another agent of the same machine and task', async (t) => {
  const one = await start(t)
  const other = await start(t)
  await agentProcess(t, one.server, one.dataDir, one.options)
  const killed = await agentProcess(t, other.server, other.dataDir, other.options)
  await Promise.all([one.server.linked(), other.server.linked()])
  other.server.execute(other.agentId, {
    taskId: 'shared',
    script: `echo up; while [ ! -e ${other.dataDir}/go ]; do sleep 0.05; done; exit 7`,
  })
  await other.server.until(() => other.server.text('shared') === 'up\n', 'the other runs')
  one.server.execute(one.agentId, { taskId: 'shared', script: 'echo up; sleep 600', timeout: 1 })
  t.is((await one.server.completed('shared')).status, 'TIMEOUT')
  // A restarted agent must not take the other's script for its own.
  await kill(killed, 'SIGKILL')
  writeFileSync(`${other.dataDir}/go`, '')
  await agentProcess(t, other.server, other.dataDir, other.options)
  t.is((await other.server.completed('shared')).exitCode, 7)
})
