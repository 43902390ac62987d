import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { readStat } from '../../../src/agent/processes/machine.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { agentProcess, kill } from '../../helpers/agents/agent-process.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'
import { LiveTerminal } from '../../helpers/terminals/terminal-session.ts'
import { until } from '../../helpers/until.ts'

/** An agent process with a session, its shell and two processes that ignore SIGHUP. */
async function sessionInProcess(t: ExecutionContext) {
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const dataDir = await temporaryDirectory(t)
  const agent = await agentProcess(t, server, dataDir)
  await server.linked()
  const { agentId } = JSON.parse(readFileSync(join(dataDir, 'identity.json'), 'utf8')) as { agentId: string }
  const session = await new LiveTerminal(server, agentId).open()
  const file = join(dataDir, 'pids')
  session.type(
    `setsid sh -c 'trap "" HUP; echo $$ >> ${file}; sleep 900; sleep 901' & ` +
      `sh -c 'trap "" HUP; echo $$ >> ${file}; sleep 902; sleep 903' & echo $$ >> ${file}\n`,
  )
  const pids = () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(Number) : [])
  await until('all run', () => pids().length === 3)
  const alive = () =>
    pids().filter((pid) => {
      const stat = readStat(pid)
      return stat !== null && !stat.isZombie
    })
  t.is(alive().length, 3)
  return { server, dataDir, agent, agentId, session, alive }
}

test('an agent that is stopped ends its sessions and reports it before it exits', async (t) => {
  const { server, dataDir, agent, session, alive } = await sessionInProcess(t)
  await kill(agent, 'SIGTERM')
  t.deepEqual(alive(), [])
  t.is((await session.ended()).reason, 'the agent of this host was stopped')
  t.is(server.socket, null)
  t.deepEqual(readdirSync(join(dataDir, 'terminals')), [])
})

test('F20 a killed agent leaves no shell behind, and the next agent ends processes that ignore SIGHUP', async (t) => {
  const { server, dataDir, agent, agentId, session, alive } = await sessionInProcess(t)
  await kill(agent, 'SIGKILL')
  await until('SIGHUP has ended the shell', () => alive().length === 2)
  const next = await agentProcess(t, server, dataDir)
  await server.linked(2)
  t.deepEqual(alive(), [])
  t.deepEqual(server.hellos[1]?.terminals, [])
  await session.open({ after: 0 })
  t.is((await session.ended()).reason, 'the session is gone: the agent of this host has restarted since')
  t.deepEqual(readdirSync(join(dataDir, 'terminals')), [])
  const again = await new LiveTerminal(server, agentId).open()
  again.type('exit 5\n')
  t.is((await again.ended()).exitCode, 5)
  await kill(next, 'SIGTERM')
})

test('sessions end with a reason if the process of the terminals dies, and the next session opens', async (t) => {
  const { server, agent, agentId, session, alive } = await sessionInProcess(t)
  const children = readFileSync(`/proc/${agent.pid}/task/${agent.pid}/children`, 'utf8')
  const holder = children
    .split(' ')
    .map(Number)
    .find((pid) => /terminals/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8')))
  t.truthy(holder)
  process.kill(holder ?? 0, 'SIGKILL')
  t.is((await session.ended()).reason, 'the process that holds the terminals is gone: it ended with SIGKILL')
  t.deepEqual(alive(), [])
  const again = await new LiveTerminal(server, agentId).open()
  again.type('exit 5\n')
  t.is((await again.ended()).exitCode, 5)
  const exited = once(agent, 'exit')
  agent.kill('SIGTERM')
  t.deepEqual(await exited, [0, null])
})
