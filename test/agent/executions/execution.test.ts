import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import type { ExecuteScript } from '../../../src/core/protocol/messages.ts'
import { agentOptions, linkedAgent, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { asRoot } from '../../helpers/agents/modes.ts'
import { said } from '../../helpers/programs/said.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'
import { until } from '../../helpers/until.ts'

const cases: {
  name: string
  request: Partial<ExecuteScript>
  exitCode: number
  status: string
  signal?: string
  out?: string
}[] = [
  {
    name: 'exit 0 is SUCCESS',
    request: { script: 'echo hello' },
    exitCode: 0,
    status: 'SUCCESS',
    out: 'hello\n',
  },
  { name: 'exit 1 is FAILED', request: { script: 'exit 1' }, exitCode: 1, status: 'FAILED' },
  { name: 'exit 125 is FAILED', request: { script: 'exit 125' }, exitCode: 125, status: 'FAILED' },
  {
    name: 'a file without execute permission is 126',
    request: { script: '/etc/passwd' },
    exitCode: 126,
    status: 'FAILED',
  },
  {
    name: 'an unknown command is 127',
    request: { script: 'no-such-command-here' },
    exitCode: 127,
    status: 'FAILED',
  },
  {
    name: 'KILL is 137',
    request: { script: 'kill -9 $$' },
    exitCode: 137,
    status: 'FAILED',
    signal: 'SIGKILL',
  },
  {
    name: 'TERM is 143',
    request: { script: 'kill -TERM $$' },
    exitCode: 143,
    status: 'FAILED',
    signal: 'SIGTERM',
  },
  {
    name: 'SEGV is 139',
    request: { script: 'kill -SEGV $$' },
    exitCode: 139,
    status: 'FAILED',
    signal: 'SIGSEGV',
  },
  ...[130, 137, 143].map((exitCode) => ({
    name: `a script that exits with ${exitCode} has no signal`,
    request: { script: `exit ${exitCode}` },
    exitCode,
    status: 'FAILED',
  })),
  {
    name: 'a command ended by a signal gives its exit code and no signal',
    request: { script: 'sh -c "kill -KILL \\$\\$"; exit $?' },
    exitCode: 137,
    status: 'FAILED',
  },
  {
    name: 'a missing working directory is 126',
    request: { workDir: '/no/such/place' },
    exitCode: 126,
    status: 'FAILED',
  },
  {
    name: 'the script runs in its working directory',
    request: { script: 'pwd', workDir: '/usr' },
    exitCode: 0,
    status: 'SUCCESS',
    out: '/usr\n',
  },
  {
    name: 'PYTHON runs',
    request: { scriptType: 'PYTHON', script: 'import sys; print(6*7); sys.exit(3)' },
    exitCode: 3,
    status: 'FAILED',
    out: '42\n',
  },
  {
    name: 'a user who is not allowed is 126',
    request: { runAs: 'daemon' },
    exitCode: 126,
    status: 'FAILED',
  },
  {
    name: 'stdin is empty',
    request: { script: 'cat; echo end' },
    exitCode: 0,
    status: 'SUCCESS',
    out: 'end\n',
  },
]

test('the exit code, status and signal show how a script ended', async (t) => {
  const { server, agent } = await linkedAgent(t)
  for (const [at, { request }] of cases.entries())
    server.execute(agent.agentId, { taskId: `case-${at}`, ...request })
  for (const [at, expected] of cases.entries()) {
    const complete = await server.completed(`case-${at}`)
    t.is(complete.exitCode, expected.exitCode, expected.name)
    t.is(complete.status, expected.status as 'FAILED', expected.name)
    t.is(complete.signal, expected.signal ?? null, expected.name)
    if (expected.out !== undefined) t.is(server.text(`case-${at}`), expected.out, expected.name)
    t.true(complete.duration >= 0 && Date.parse(complete.completedAt) >= Date.parse(complete.startedAt))
  }
})

test('an interpreter that is not installed is 127, and the error names it', async (t) => {
  const { server, agent } = await linkedAgent(t)
  t.false(server.hellos[0]?.capabilities.scriptTypes.includes('POWERSHELL'))
  server.execute(agent.agentId, { taskId: 'ps', scriptType: 'POWERSHELL', script: '1' })
  const complete = await server.completed('ps')
  t.is(complete.exitCode, 127)
  t.regex(complete.error ?? '', /pwsh is not installed/)
})

test('params arrive in the environment byte for byte, without variables of the agent', async (t) => {
  process.env['RSM_AGENT_ENROLL_TOKEN'] = 'secret-of-the-agent'
  const { server, agent } = await linkedAgent(t)
  const params = { MULTI: 'a\nb "c" \'d\' $e `f` \\g', EMPTY: '', dir: 'x', c: 'kept', u: '1', ÄÖ: 'never' }
  const { ÄÖ: _, ...valid } = params
  server.execute(agent.agentId, { taskId: 'env', script: 'env -0; exit 0', params: valid })
  await server.completed('env')
  const names = new Map(
    server
      .text('env')
      .split('\0')
      .filter(Boolean)
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
  for (const [name, value] of Object.entries(valid)) t.is(names.get(name), value)
  t.is(names.get('RSM_TASK_ID'), 'env')
  const expected = [
    ...Object.keys(valid),
    'RSM_EXECUTION',
    'PATH',
    'HOME',
    'USER',
    'LOGNAME',
    'LANG',
    'SHELL',
    'RSM_TASK_ID',
  ]
  const bash = ['PWD', 'OLDPWD', 'SHLVL', '_']
  for (const name of names.keys())
    t.true([...expected, ...bash].includes(name), `${name} came from somewhere`)
  server.execute(agent.agentId, { taskId: 'bad-name', params })
  t.regex((await server.completed('bad-name')).error ?? '', /ÄÖ/)
})

test('A16 bash errors begin with $0, the path of the script, and the line', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  const workDir = join(await temporaryDirectory(t), "it's\n a $(place)")
  mkdirSync(workDir)
  const script = 'pwd; echo "$0"\nfoo\ncd /nonexistent\nsource "$0.none"\nif then'
  server.execute(agent.agentId, { taskId: 'errors', script, scriptName: 'deploy.sh', workDir })
  t.is((await server.completed('errors')).exitCode, 2)
  const path = `${dataDir}/executions/errors/run/deploy.sh`
  t.is(server.text('errors'), `${workDir}\n${path}\n`)
  const errors = server.text('errors', 'stderr').split('\n')
  t.deepEqual(errors.slice(0, 3), [
    `${path}: line 2: foo: command not found`,
    `${path}: line 3: cd: /nonexistent: No such file or directory`,
    `${path}: line 4: ${path}.none: No such file or directory`,
  ])
  t.regex(errors[3] ?? '', /deploy\.sh: line 5: syntax error near/)
})

asRoot('A16 another user can read the script by $0, and no other file of the agent', async (t) => {
  const { server, agent } = await linkedAgent(t, { allowRunAs: ['nobody'] })
  const script = `pwd; tail -n 1 "$0"; ls -l /proc/self/fd | grep -c /script
for up in .. ../.. ../../..; do ls "\${0%/*}/$up" 2>/dev/null; done; touch "\${0%/*}/x" 2>/dev/null && echo made
# the end
`
  server.execute(agent.agentId, { taskId: 'errors', script, runAs: 'nobody', workDir: '/var/empty-not' })
  t.is((await server.completed('errors')).exitCode, 126)
  server.execute(agent.agentId, { taskId: 'read', script, runAs: 'nobody', workDir: '/usr/share/misc' })
  await server.completed('read')
  t.is(server.text('read'), '/usr/share/misc\n# the end\n0\n')
})

test('A17 a script has the open-files limit its agent was started with, not the one raised by Node', async (t) => {
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const dataDir = await temporaryDirectory(t)
  const { log: _, ...options } = { ...agentOptions(server, dataDir), agentId: 'limited' }
  const program = join(import.meta.dirname, '../../fixtures/agent-process.js')
  const child = spawn('sh', ['-c', 'ulimit -S -n 777; "$@"; true', 'sh', process.execPath, program], {
    env: { PATH: process.env['PATH'], AGENT_OPTIONS: JSON.stringify(options) },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  t.teardown(() => process.kill(-(child.pid ?? 0), 'SIGKILL'))
  await said(child)
  await server.linked()
  server.execute('limited', { taskId: 'limits', script: 'ulimit -S -n; ulimit -H -n' })
  await server.completed('limits')
  const hard = spawnSync('sh', ['-c', 'ulimit -H -n'], { encoding: 'utf8' }).stdout
  t.is(server.text('limits'), `777\n${hard}`)
})

test('no process has the script or a param in its arguments', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const script = 'for p in $PPID $$; do tr "\\0" " " </proc/$p/cmdline; done # needle-in-script'
  server.execute(agent.agentId, { taskId: 'argv', script, params: { SECRET: 'needle-in-param' } })
  await server.completed('argv')
  t.regex(server.text('argv'), /bash/)
  t.notRegex(server.text('argv'), /needle/)
})

test('both streams arrive with one numbering, and SCRIPT_COMPLETE carries the last number', async (t) => {
  const { server, agent } = await linkedAgent(t)
  server.execute(agent.agentId, { taskId: 'both', script: 'echo out; echo err >&2; echo more' })
  const complete = await server.completed('both')
  t.is(server.text('both'), 'out\nmore\n')
  t.is(server.text('both', 'stderr'), 'err\n')
  t.is(complete.lastSequence, server.stored('both'))
  t.is(complete.stdoutBytes, 9)
  t.is(complete.stderrBytes, 4)
  t.false(complete.truncated)
})

test('scripts beyond maxExecutions are queued and run in order', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t, { maxExecutions: 1 })
  const script = `echo $RSM_TASK_ID >> ${dataDir}/order`
  server.execute(agent.agentId, { taskId: 'q0', script: `sleep 0.3; ${script}` })
  for (const taskId of ['q1', 'q2', 'q3']) server.execute(agent.agentId, { taskId, script })
  await server.completed('q3')
  t.is(await readFile(`${dataDir}/order`, 'utf8'), 'q0\nq1\nq2\nq3\n')
})

test('a process left in the background does not delay the end and stays alive', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  const script = `(until [ -e ${dataDir}/go ]; do sleep 0.05; done; touch ${dataDir}/lived) & echo started`
  server.execute(agent.agentId, { taskId: 'bg', script })
  const complete = await server.completed('bg')
  t.is(complete.status, 'SUCCESS')
  t.false(existsSync(`${dataDir}/lived`))
  writeFileSync(`${dataDir}/go`, '')
  await until('it is still alive', () => existsSync(`${dataDir}/lived`))
})

test('a script’s output excludes the wrapper shell’s message about its death', async (t) => {
  const { server, agent } = await linkedAgent(t)
  server.execute(agent.agentId, { taskId: 'killed', script: 'echo mine >&2; kill -KILL $$' })
  const complete = await server.completed('killed')
  t.is(complete.signal, 'SIGKILL')
  t.is(server.text('killed', 'stderr'), 'mine\n')
})

test('the wrapper of a script runs from a file, because bash as sh reports no death under -c', async (t) => {
  const { server, agent } = await linkedAgent(t)
  server.execute(agent.agentId, { taskId: 'wrapped', script: 'tr "\\0" "\\n" </proc/$PPID/cmdline' })
  await server.completed('wrapped')
  const [, file = ''] = server.text('wrapped').split('\n')
  t.true(file.endsWith('/wrapper'), file)
})
