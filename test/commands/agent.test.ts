import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { type AgentOptions, startAgent } from '../../src/agent/main.ts'
import { findLimiter } from '../../src/agent/processes/limits.ts'
import { readAgentState } from '../../src/agent/reports/read-state.ts'
import type { AgentState } from '../../src/core/hosts/agent-state.ts'
import type { Host } from '../../src/core/protocol/http/hosts.ts'
import { cleanEnv, runRsm, startRsm } from '../fixtures/rsm.ts'
import { agentOptions, linkedAgent, temporaryDirectory } from '../helpers/agents/agent.ts'
import { commandLine } from '../helpers/clients/command-line.ts'
import { followEvents } from '../helpers/clients/follow.ts'
import { counted, startTask } from '../helpers/clients/tasks.ts'
import { startTestServer } from '../helpers/servers/server.ts'
import { until } from '../helpers/until.ts'

const isRoot = process.getuid?.() === 0
const asRoot = isRoot ? test : test.skip // Only root may become another user.
const limited = findLimiter('test', true).enforced.includes('memoryMB') ? test : test.skip // Needs a cgroup.
const boxed = isRoot && spawnSync('bwrap', ['--version']).status === 0 ? test : test.skip // Needs bubblewrap.

/** Links an agent of web1 to a server, and opens a command line. */
async function pair(t: ExecutionContext, options: Partial<AgentOptions> = {}) {
  const server = await startTestServer(t)
  const dataDir = await temporaryDirectory(t)
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', {})
  const agent = await startAgent({
    ...agentOptions(server, dataDir),
    enrollToken,
    hostname: 'web1',
    ...options,
  })
  t.teardown(() => agent.stop())
  const rsm = commandLine(t, server)
  const { hostId } = agent
  if (hostId === null) throw new Error('the agent has no host')
  // A finished task proves the link.
  await counted(server, await startTask(server, [hostId]), ({ SUCCESS }) => SUCCESS === 1)
  return { server, agent, dataDir, rsm, hostId }
}

asRoot("exec --run-as runs as that user with its groups only, otherwise as the agent's user", async (t) => {
  const { rsm } = await pair(t, { allowRunAs: ['nobody'] })
  const { stdout } = spawnSync('id', ['nobody'], { encoding: 'utf8' })
  const ran = await rsm(['exec', '-N', '-w', 'web1', '--run-as', 'nobody', '--', 'id'])
  t.is(ran.stdout, stdout, ran.stderr)
  t.is((await rsm(['exec', '-N', '-w', 'web1', '--', 'id -u'])).stdout, '0\n')
  const refused = await rsm(['exec', '-w', 'web1', '-l', 'daemon', '--', 'id'])
  t.is(refused.exit, 126)
  t.regex(refused.stderr, /not allowed to run as daemon/)
})

limited(
  'exec --limit kills a script that exceeds its memory limit, and reports it; tasks show names the limits',
  async (t) => {
    const { rsm } = await pair(t)
    const options = ['--limit', 'memory=64M', '--limit', 'processes=50', '--type', 'python']
    const ran = await rsm(['exec', '-w', 'web1', ...options, '--', 'bytearray(200 * 1024 * 1024)'])
    t.is(ran.exit, 137)
    t.regex(ran.stderr, /over its memory limit of 64 MB/)
    const [task] = JSON.parse((await rsm(['tasks', 'list', '--json'])).stdout).content as { taskId: string }[]
    t.regex((await rsm(['tasks', 'show', task?.taskId ?? ''])).stdout, /limits +memory 64 MB, processes 50\n/)
  },
)

test('hosts show prints the user and the sandbox that scripts run in', async (t) => {
  const { rsm } = await pair(t)
  const { username, uid } = userInfo()
  const shown = await rsm(['hosts', 'show', 'web1'])
  t.regex(shown.stdout, new RegExp(`^scripts run as +${username} \\(no sandbox\\)$`, 'm'))
  const host = JSON.parse((await rsm(['hosts', 'show', 'web1', '--json'])).stdout) as Host
  t.like(host.agent, { runAs: username, runsAsRoot: uid === 0, sandbox: 'none' })
})

test('doctor, pending tasks and failed tasks report a stopped agent and since when, until it is back', async (t) => {
  const { server, agent, dataDir, rsm, hostId } = await pair(t)
  await agent.stop()
  const stopped = 'the agent was stopped at 20\\d\\d-\\d\\d-\\d\\d [\\d:]+[+-][\\d:]+'
  const shown = async () => (await server.data('GET', `/api/hosts/${hostId}`)) as Host
  await until('the link is gone', async () => (await shown()).agent?.connected === false)
  const doctor = await rsm(['hosts', 'doctor', 'web1'])
  t.is(doctor.exit, 1)
  t.regex(
    doctor.stdout,
    new RegExp(
      `^web1 is NO LINK: its agent was stopped \\d+ s ago\nerror +${stopped}: no script can run there\n +start it again on web1\n`,
    ),
  )
  t.notRegex(doctor.stdout.slice(doctor.stdout.indexOf('\n')), /no link|healthy/)
  t.regex((await rsm(['hosts', 'list'])).stdout, /web1 +NO LINK .*its agent was stopped \d+ s ago/)
  t.is((await rsm(['hosts', 'list', 'web*,@*', '--status', 'NO_LINK', '-o', 'names'])).stdout, 'web1\n')
  t.is((await rsm(['hosts', 'list', '--status', 'ONLINE', '-o', 'names'])).stdout, '')
  t.is((await rsm(['hosts', 'wait', 'web1', '--status', 'NO_LINK'])).exit, 0)
  const plan = await rsm(['exec', '-w', 'web1', '--plan', '--', 'true'])
  t.regex(plan.stdout, /^web1 is NO LINK: its agent was stopped \d+ s ago$/m)
  const ran = await rsm(['exec', '-w', 'web1', '--queue', '0', '--', 'true'])
  t.regex(ran.stderr, /web1: UNREACHABLE: web1 is not linked: its agent was stopped \d+ s ago/)
  const taskId = await startTask(server, [hostId])
  const url = `${server.url}/api/tasks/${taskId}/logs?follow=true`
  const headers = { authorization: `Bearer ${server.token}` }
  const heard = await followEvents(url, headers, ({ event, data }) => event === 'host' && data.error !== null)
  t.regex(heard.at(-1)?.data.error, /^its agent is stopped; waiting up to 15 s \(--queue\)$/)
  const next = await startAgent(agentOptions(server, dataDir))
  t.teardown(() => next.stop())
  await counted(server, taskId, ({ SUCCESS }) => SUCCESS === 1)
  t.like((await shown()).agent, { connected: true, linkFault: null })
})

boxed(
  'an agent with --sandbox strict runs every script in the sandbox, and hosts show prints it',
  async (t) => {
    const { rsm } = await pair(t, { sandbox: 'strict', runAs: 'nobody' })
    t.regex((await rsm(['hosts', 'show', 'web1'])).stdout, /scripts run as +nobody \(sandbox strict\)/)
    const ran = await rsm(['exec', '-N', '-w', 'web1', '--', 'id -un; ls /proc | grep -c "^[0-9]"'])
    const [user, processes] = ran.stdout.split('\n')
    t.is(user, 'nobody')
    t.true(Number(processes) < 10)
  },
)

test('agent status exits with 0 while linked, 1 with the reason while not, 5 if no agent runs', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t, { limits: {} })
  const { url } = server
  const home = commandLine(t, { url, token: '' } as never)
  const status = (...more: string[]) => home(['agent', 'status', '--data-dir', dataDir, ...more])
  await until('the agent is linked', () => readAgentState(dataDir).linked)
  t.is((JSON.parse((await status('--json')).stdout) as AgentState).agentId, agent.agentId)
  const shown = await status()
  t.is(shown.exit, 0, shown.stderr)
  t.regex(shown.stdout, new RegExp(`agent +${agent.agentId} \\(pid ${process.pid}\\)`))
  t.regex(shown.stdout, /linked +yes, since /)
  t.regex(shown.stdout, /scripts run as +\S+ \(no sandbox\)/)
  t.regex(shown.stdout, /executions +0 running, 0 queued, 0 unacknowledged/)
  t.regex(shown.stdout, /terminals +0 open/)
  t.is(statSync(join(dataDir, 'status.json')).mode & 0o777, 0o600)
  server.execute(agent.agentId, { taskId: 'runs', script: 'sleep 600' })
  await until('a script runs', () => readAgentState(dataDir).executions.running === 1)
  server.send('CANCEL_SCRIPT', { taskId: 'runs' })
  await server.completed('runs')
  await server.close()
  await until('the link is gone', () => !readAgentState(dataDir).linked)
  const away = await status()
  t.is(away.exit, 1)
  t.regex(away.stdout, /linked +no, since /)
  t.regex(away.stdout, /^error +(it has no link|no heartbeat reaches the server): .*\n +\S/m)
  const path = join(dataDir, 'status.json')
  const dead = JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), startTime: 1 })
  await agent.stop()
  const stopped = await status()
  t.is(stopped.exit, 5)
  t.regex(stopped.stderr, /no agent runs on /)
  writeFileSync(path, dead)
  const gone = await status()
  t.regex(gone.stderr, new RegExp(`is gone: pid ${process.pid} ended without a shutdown`))
  const again = `\n     start it: rsm agent run --url ${url} --data-dir ${dataDir}\n`
  t.true(gone.stderr.includes(again), gone.stderr)
})

test('agent status prints why an agent is not registered yet, and that no agent runs once it has stopped', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const stop = new AbortController()
  const url = 'http://127.0.0.1:1'
  const starting = startAgent({ ...agentOptions({ url }, dataDir), hostname: 'web1', signal: stop.signal })
  const ended = t.throwsAsync(starting, { message: /stopped before it was registered/ })
  const rsm = commandLine(t, { url, token: '' } as never)
  const status = () => rsm(['agent', 'status', '--data-dir', dataDir])
  let ran = await status()
  for (let look = 0; look < 60 && !ran.stdout.includes('ECONNREFUSED'); look++) ran = await status()
  t.is(ran.exit, 1, ran.stderr)
  t.regex(ran.stdout, /^host +web1 \(not registered yet\)$/m)
  t.regex(
    ran.stdout,
    /^error +it is not registered yet: .*ECONNREFUSED.*\n +nothing listens at http:\/\/127/m,
  )
  stop.abort()
  await ended
  ran = await status()
  t.is(ran.exit, 5)
  t.regex(ran.stderr, /^rsm: no agent runs on .*\n {5}\S/)
})

test('A16 agent status shows a link at once, and explains a missing link in words', async (t) => {
  const { server, dataDir } = await linkedAgent(t)
  await until('the agent is linked', () => readAgentState(dataDir).linked)
  server.refusesLinks = 503
  server.socket?.close(4409)
  await until('the agent notices the lost link', () => !readAgentState(dataDir).linked)
  t.is(readAgentState(dataDir).reason, 'another agent has linked that has the same identity')
  const rsm = commandLine(t, { url: server.url, token: '' } as never)
  const { stdout } = await rsm(['agent', 'status', '--data-dir', dataDir])
  t.regex(stdout, /it has no link: another agent has linked that has the same identity\n.*cloned disk/)
})

test('A16 agent status reports that the host was removed, and suggests hosts join without --replace', async (t) => {
  const server = await startTestServer(t, { heartbeatInterval: 1 })
  const dataDir = await temporaryDirectory(t)
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', { maxUses: 5 })
  const agent = await startAgent({ ...agentOptions(server, dataDir), enrollToken })
  t.teardown(() => agent.stop())
  await server.data('DELETE', `/api/hosts/${agent.hostId}`)
  await until('the heartbeat is refused', () =>
    /was removed/.test(readAgentState(dataDir).heartbeatFault ?? ''),
  )
  const rsm = commandLine(t, { url: server.url, token: '' } as never)
  const { stdout, exit } = await rsm(['agent', 'status', '--data-dir', dataDir])
  t.is(exit, 1)
  t.regex(stdout, /was removed/)
  t.regex(stdout, /rsm hosts join/)
  t.notRegex(stdout, /--replace|closed with/)
})

test('A11 a server with a limit of 64 open files reports it, and suggests a command', (t) => {
  const bin = join(import.meta.dirname, '../../../bin/run.js')
  const words = ['server', 'start', '--port', '0', '--data-dir', '/nonexistent/rsm']
  const line = ['-c', 'ulimit -n 64; exec "$@"', 'sh', process.execPath, bin, ...words]
  const { status, stderr } = spawnSync('sh', line, { encoding: 'utf8' })
  t.is(status, 6)
  t.regex(stderr, /^rsm: too many open files: .*64.*\n {5}raise the limit: ulimit -n 4096/)
  t.notRegex(stderr, /package|internal error/)
})

test('an agent reads its server, token and pin from a file with the join string', async (t) => {
  const server = await startTestServer(t)
  const home = await temporaryDirectory(t)
  const file = join(home, 'join-string')
  const { join: text } = await server.data('POST', '/api/enrollment-tokens', { url: server.url })
  writeFileSync(file, `${text}\n`, { mode: 0o600 })
  const words = ['agent', 'run', '--join-file', file, '--data-dir', join(home, 'agent')]
  const agent = startRsm([...words, '--hostname', 'web1'], cleanEnv(home))
  t.teardown(() => agent.child.kill('SIGKILL'))
  await agent.shows('is host 1')
  const both = await runRsm([...words, '--url', server.url], cleanEnv(home))
  t.is(both.exit, 2)
  t.regex(both.stderr, /--url and --join-file exclude each other/)
  const neither = await runRsm(['agent', 'run'], cleanEnv(home))
  t.regex(neither.stderr, /--url is missing/)
})

test('scripts of an agent inherit neither its descriptors nor its enrollment token', async (t) => {
  const server = await startTestServer(t)
  const dataDir = await temporaryDirectory(t)
  const { token } = await server.data('POST', '/api/enrollment-tokens', {})
  const secret = join(dataDir, 'secret')
  writeFileSync(secret, 'top secret', { mode: 0o600 })
  const bin = join(import.meta.dirname, '../../../bin/run.js')
  const agentDir = join(dataDir, 'agent')
  const words = ['agent', 'run', '--url', server.url, '--data-dir', agentDir, '--hostname', 'web1']
  const child = spawn(
    'bash',
    ['-c', 'exec 7<"$0" 200<"$0"; exec "$@"', secret, process.execPath, bin, ...words],
    {
      env: { ...process.env, RSM_AGENT_ENROLL_TOKEN: token },
      stdio: 'ignore',
    },
  )
  t.teardown(() => child.kill('SIGKILL'))
  await until('the agent is linked', async () => {
    const { content } = await server.data('GET', '/api/hosts')
    return content[0]?.agent?.connected === true
  })
  const run = (script: string) => commandLine(t, server)(['exec', '-N', '-w', 'web1', '--', script])
  const ran = await run('ls /proc/self/fd; cat <&200')
  t.false(
    ran.stdout.split('\n').some((fd) => fd === '7' || fd === '200'),
    ran.stdout,
  )
  t.regex(ran.stderr, /200: Bad file descriptor/)
  const { stdout } = await run(`tr '\\0' '\\n' < /proc/${child.pid}/environ`)
  t.true(stdout.includes('PATH='), stdout)
  t.false(stdout.includes('RSM_AGENT_ENROLL_TOKEN') || stdout.includes(token), stdout)
})

test('agent install prints each change on a line of its own', async (t) => {
  const home = await temporaryDirectory(t)
  const words = ['agent', 'install', '--user', '--url', 'http://127.0.0.1:1', '--no-start']
  const { stdout } = await runRsm(words, cleanEnv(home))
  t.true(stdout.startsWith(`create ${home}/config/rsm\nwrite ${home}/config/rsm/agent.env\nwrite `), stdout)
})
