import { spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import type { LogLevel } from '../../../src/agent/log.ts'
import { type AgentOptions, startAgent } from '../../../src/agent/main.ts'
import { barredUser, namedAccount, ownAccount } from '../../../src/agent/processes/account.ts'
import { openSandbox } from '../../../src/agent/processes/sandbox.ts'
import { agentOptions, linkedAgent, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'

const isRoot = process.getuid?.() === 0
const asRoot = isRoot ? test : test.skip // Only root may become another user.

test('a user whose name is part of an allowed name is refused', (t) => {
  const own = { ...ownAccount(), name: 'root', uid: 0 }
  const barred = (user: string, allowRunAs: readonly string[]) =>
    barredUser(user, { runAs: 'nobody', allowRunAs, own })
  t.is(barred('webroot', ['webroot', 'deploy']), null)
  t.is(barred('nobody', []), null)
  t.regex(barred('root', ['webroot', 'deploy']) ?? '', /the agent needs --allow-run-as root/)
  t.regex(barred('', ['webroot']) ?? '', /the agent needs --allow-run-as/)
  // A string instead of a list, as a parser once returned it.
  t.regex(barred('root', 'webroot' as unknown as string[]) ?? '', /the agent needs --allow-run-as/)
})

asRoot('with runAs, identity, groups, capabilities, umask and home are the user’s, not root’s', async (t) => {
  const { server, agent } = await linkedAgent(t, { allowRunAs: ['nobody'] })
  const former = process.env['HOME']
  const script = `id; grep -E '^(Groups|Cap|NoNewPrivs)' /proc/self/status | tr -s '\\t ' ' '; umask; echo "$HOME"`
  server.execute(agent.agentId, { taskId: 'id', script, runAs: 'nobody' })
  await server.completed('id')
  const { stdout } = spawnSync('id', ['nobody'], { encoding: 'utf8' })
  const gid = spawnSync('id', ['-G', 'nobody'], { encoding: 'utf8' }).stdout.trim()
  const home = spawnSync('getent', ['passwd', 'nobody'], { encoding: 'utf8' }).stdout.split(':')[5]
  const none = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map((set) => `${set}: 0000000000000000`)
  t.deepEqual(
    server
      .text('id')
      .trimEnd()
      .split('\n')
      .map((line) => line.trimEnd()),
    [stdout.trim(), `Groups: ${gid}`, ...none, 'NoNewPrivs: 1', '0022', home],
  )
  t.not(home, former)
})

asRoot(
  'S09 another user’s script cannot read the agent’s token, journal and memory, nor other tasks’ params and output',
  async (t) => {
    const { server, agent, dataDir } = await linkedAgent(t, { runAs: 'nobody', allowRunAs: ['daemon'] })
    server.execute(agent.agentId, {
      taskId: 'victim',
      script: 'echo secret-output; sleep 600',
      runAs: 'daemon',
      params: { SECRET: 'secret-param' },
    })
    await server.until(() => server.text('victim') === 'secret-output\n', 'the other task runs')
    const script = `
for file in ${dataDir} ${dataDir}/identity.json ${dataDir}/journal ${dataDir}/status.json ${dataDir}/executions/victim/stdout \
  ${dataDir}/executions/victim/run/script /proc/${process.pid}/mem /proc/${process.pid}/environ; do
  if head -c 1 $file >/dev/null 2>&1 || ls $file/ >/dev/null 2>&1; then echo reads $file; fi
done
cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c secret-para[m]
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c 'secret-[op]'
ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c ${dataDir}/executions/victim
ls /proc/${process.pid}/fd /proc/${process.pid}/root 2>/dev/null
kill -0 ${process.pid} 2>/dev/null && echo signals; kill -0 $PPID 2>/dev/null && echo signals its wrapper; true`
    server.execute(agent.agentId, { taskId: 'thief', script })
    await server.completed('thief')
    t.deepEqual(server.text('thief').trim().split(/\s+/), ['0', '0', '0'])
    server.send('CANCEL_SCRIPT', { taskId: 'victim' })
    t.is((await server.completed('victim')).status, 'CANCELLED')
  },
)

asRoot(
  'another user’s script can write /dev/stdout by name, and has no variables of the agent',
  async (t) => {
    const { server, agent, dataDir } = await linkedAgent(t, { runAs: 'nobody' })
    server.execute(agent.agentId, {
      taskId: 'named',
      scriptType: 'PYTHON',
      script: 'import os; open("/dev/stdout", "a").write("named\\n"); print(sorted(os.environ))',
    })
    await server.completed('named')
    const [named, names = ''] = server.text('named').split('\n')
    t.is(named, 'named')
    t.notRegex(names, /ENROLL|TOKEN|RSM_AGENT/)
    t.notRegex(names, new RegExp(dataDir))
  },
)

asRoot('an unknown user and a user not on the list are 126, and the error says why', async (t) => {
  const { server, agent } = await linkedAgent(t, { allowRunAs: ['no-such-user'] })
  server.execute(agent.agentId, { taskId: 'unknown', runAs: 'no-such-user' })
  const unknown = await server.completed('unknown')
  t.is(unknown.exitCode, 126)
  t.regex(unknown.error ?? '', /there is no user no-such-user on this host/)
  server.execute(agent.agentId, { taskId: 'unlisted', runAs: 'nobody' })
  const unlisted = await server.completed('unlisted')
  t.is(unlisted.exitCode, 126)
  t.regex(unlisted.error ?? '', /not allowed to run as nobody: the agent needs --allow-run-as nobody/)
})

asRoot('--sandbox user refuses root even if it is on the list', async (t) => {
  const { server, agent } = await linkedAgent(t, { sandbox: 'user', runAs: 'nobody', allowRunAs: ['root'] })
  server.execute(agent.agentId, { taskId: 'root', script: 'id', runAs: 'root' })
  const complete = await server.completed('root')
  t.is(complete.exitCode, 126)
  t.regex(complete.error ?? '', /not allowed to run as root: --sandbox user/)
  t.is(server.text('root'), '')
})

const starts: [string, Partial<AgentOptions>, RegExp][] = [
  ['an unknown --run-as', { runAs: 'no-such-user' }, /--run-as no-such-user: there is no such user/],
  ['--sandbox-network without strict', { sandboxNetwork: true }, /--sandbox-network is for --sandbox strict/],
  ['--sandbox user without another user', { sandbox: 'user' }, /--sandbox user/],
  ['--sandbox user as root by name', { sandbox: 'user', runAs: userInfo().username }, /--sandbox user/],
]
for (const [title, options, message] of starts)
  test(`an agent refuses to start with ${title}, before it registers`, async (t) => {
    const dataDir = await temporaryDirectory(t)
    const server = await FakeServer.start()
    t.teardown(() => server.close())
    await t.throwsAsync(startAgent({ ...agentOptions(server, dataDir), ...options }), { message })
    t.is(server.registrations, 0)
  })

test('an agent starts with an unknown user in --allow-run-as and logs a warning', async (t) => {
  const warned: string[] = []
  await linkedAgent(t, {
    allowRunAs: ['no-such-user'],
    logLevel: 'WARN',
    log: (level, message) => level === 'WARN' && warned.push(message),
  })
  t.true(warned.some((message) => message.startsWith('--allow-run-as no-such-user: there is no such user')))
})

test('an agent that is not root refuses to start with another user, and says why', async (t) => {
  const own = { ...ownAccount(), name: 'app', uid: 4711 }
  await t.throwsAsync(namedAccount('nobody', own), { message: /runs as app, and only root can run scripts/ })
  const options = { mode: 'user', network: false, dataDir: '/', own } as const
  await t.throwsAsync(openSandbox(options, own), { message: /this agent runs as app/ })
})

test('--sandbox strict without bubblewrap stops the start with the package to install', async (t) => {
  const directory = await temporaryDirectory(t)
  const bin = join(directory, 'bin')
  mkdirSync(bin)
  for (const name of ['sh', 'cat', 'chmod']) symlinkSync(`/bin/${name}`, join(bin, name))
  const own = ownAccount()
  const start = (path: string) =>
    openSandbox({ mode: 'strict', network: false, dataDir: directory, own, path }, own)
  const missing = await t.throwsAsync<Error & { hint?: string }>(start(bin), {
    message: /bubblewrap is not installed/,
  })
  t.regex(missing?.hint ?? '', /install bubblewrap/)
  writeFileSync(
    join(bin, 'bwrap'),
    '#!/bin/sh\necho "bwrap: No permissions to create new namespace" >&2; exit 1\n',
    { mode: 0o755 },
  )
  await t.throwsAsync(start(bin), { message: /No permissions to create new namespace/ })
})

test('HELLO names the user of scripts, and the log warns of root without a sandbox', async (t) => {
  const said: [LogLevel, string][] = []
  const { server } = await linkedAgent(t, {
    logLevel: 'WARN',
    log: (level, message) => said.push([level, message]),
  })
  const { username, uid } = userInfo()
  t.like(server.hellos[0]?.capabilities, { runAs: username, runsAsRoot: uid === 0, sandbox: 'none' })
  const warned = said.some(
    ([level, message]) => level === 'WARN' && /run as root without a sandbox/.test(message),
  )
  t.is(warned, uid === 0)
})
