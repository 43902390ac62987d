import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { agentProcess, kill } from '../../helpers/agents/agent-process.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'
import { until } from '../../helpers/until.ts'

async function start(t: ExecutionContext) {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const agentId = 'agent-under-test'
  return { server, dataDir, agentId, options: { agentId } }
}

test('a timeout keeps running while the agent is down', async (t) => {
  const { server, dataDir, agentId, options } = await start(t)
  const first = await agentProcess(t, server, dataDir, options)
  await server.linked()
  server.execute(agentId, { taskId: 'late', script: 'echo up; sleep 600', timeout: 2 })
  await server.until(() => server.text('late') === 'up\n', 'the script runs')
  await kill(first, 'SIGKILL')
  await delay(1_500)
  await agentProcess(t, server, dataDir, options)
  const complete = await server.completed('late')
  t.is(complete.status, 'TIMEOUT')
  t.true(complete.duration >= 1_900 && complete.duration < 20_000, `${complete.duration} ms`)
})

test('F13 a suspended agent does not time out scripts wrongly', async (t) => {
  const { server, dataDir, agentId, options } = await start(t)
  const first = await agentProcess(t, server, dataDir, options)
  await server.linked()
  server.execute(agentId, { taskId: 'stopped', script: 'echo up; sleep 0.5', timeout: 3 })
  await server.until(() => server.text('stopped') === 'up\n', 'the script runs')
  first.kill('SIGSTOP')
  await delay(4_000)
  first.kill('SIGCONT')
  const complete = await server.completed('stopped')
  t.is(complete.status, 'SUCCESS')
  t.true(complete.duration < 3_000, `${complete.duration} ms`)
})

/** Ignores zombies: without an init process that reaps orphans, dead ones stay. */
const lives = (pid: number) =>
  existsSync(`/proc/${pid}`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))

test('F08 an agent killed while it ended a process tree: the next agent ends the rest and still reports TIMEOUT', async (t) => {
  const { server, dataDir, agentId, options } = await start(t)
  const first = await agentProcess(t, server, dataDir, options)
  await server.linked()
  const stubborn = `(trap '' TERM; echo $BASHPID > ${dataDir}/stubborn; while [ -d ${dataDir} ]; do sleep 0.2; done) &`
  const waiting = `while [ ! -e ${dataDir}/stubborn ]; do sleep 0.05; done; echo up; wait`
  server.execute(agentId, { taskId: 'ending', script: `${stubborn} ${waiting}`, timeout: 3 })
  await server.until(() => server.text('ending') === 'up\n', 'the script runs')
  const exit = `${dataDir}/executions/ending/exit`
  await until('the script has ended', () => readFileSync(exit, 'latin1').startsWith('143 '))
  await kill(first, 'SIGKILL')
  const pid = Number(readFileSync(`${dataDir}/stubborn`, 'utf8'))
  t.true(lives(pid), 'the process that ignores TERM outlived the agent')
  await agentProcess(t, server, dataDir, options)
  const complete = await server.completed('ending')
  t.is(complete.status, 'TIMEOUT')
  t.is(complete.exitCode, -1)
  t.false(lives(pid))
})
