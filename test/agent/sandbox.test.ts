import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import test from 'ava'
import { type AgentOptions, startAgent } from '../../src/agent/main.ts'
import type { ExecuteScript } from '../../src/core/protocol/messages.ts'
import { agentOptions, linkedAgent, temporaryDirectory } from '../helpers/agent.ts'
import { FakeServer } from '../helpers/fake-server.ts'

const isRoot = process.getuid?.() === 0
const hasBwrap = spawnSync('bwrap', ['--version']).status === 0
const asRoot = isRoot ? test : test.skip // Only root may become another user.
const boxed = isRoot && hasBwrap ? test : test.skip // bubblewrap has to be installed.

const nobody = { runAs: 'nobody', allowRunAs: ['daemon'] }

/** What has to hold whoever a script runs as, and in whatever box. */
const modes: [string, Partial<AgentOptions>, typeof test | typeof test.skip][] = [
  ['none, as the agent', {}, test],
  ['none, as another user', nobody, asRoot],
  ['user', { ...nobody, sandbox: 'user' }, asRoot],
  ['strict, as the agent', { sandbox: 'strict' }, boxed],
  ['strict, as another user', { ...nobody, sandbox: 'strict' }, boxed],
]

/** What any child of this process gets: streams, one for the directory itself, and what this process was started with. */
const descriptors = spawnSync('ls', ['/proc/self/fd'], { encoding: 'utf8' }).stdout

interface Case {
  name: string
  request: Partial<ExecuteScript>
  exitCode: number
  signal?: string
  out?: string
}

const cases: Case[] = [
  {
    name: 'success',
    request: { script: 'echo hello; echo again >> /dev/stdout' },
    exitCode: 0,
    out: 'hello\nagain\n',
  },
  { name: 'exit', request: { script: 'exit 7' }, exitCode: 7 },
  { name: 'unknown command', request: { script: 'no-such-command' }, exitCode: 127 },
  { name: 'killed', request: { script: 'kill -9 $$' }, exitCode: 137, signal: 'SIGKILL' },
  { name: 'segv', request: { script: 'kill -SEGV $$' }, exitCode: 139, signal: 'SIGSEGV' },
  {
    name: 'python',
    request: { scriptType: 'PYTHON', script: 'import sys; print(6*7); sys.exit(3)' },
    exitCode: 3,
    out: '42\n',
  },
  { name: 'workDir', request: { script: 'pwd', workDir: '/usr' }, exitCode: 0, out: '/usr\n' },
  { name: 'no workDir', request: { script: 'pwd', workDir: '/no/such/place' }, exitCode: 126 },
  {
    name: 'params',
    request: { script: 'printf %s "$P$c$1"', params: { P: 'a b\n', c: 'x' } },
    exitCode: 0,
    out: 'a b\nx',
  },
  { name: 'stdin', request: { script: 'cat; umask' }, exitCode: 0, out: '0022\n' },
  { name: 'descriptors', request: { script: 'ls /proc/self/fd' }, exitCode: 0, out: descriptors },
  {
    name: 'timeout',
    request: { script: 'trap "echo ended; exit 9" TERM; echo up; while :; do sleep 0.1; done', timeout: 1 },
    exitCode: -1,
    out: 'up\nended\n',
  },
  { name: 'background', request: { script: 'sleep 3 & exit 4' }, exitCode: 4 },
]

for (const [mode, options, on] of modes) {
  on(
    `sandbox ${mode}: exit codes, signals, output, params, descriptors and timeouts are what they are`,
    async (t) => {
      const { server, agent } = await linkedAgent(t, options)
      for (const { name, request } of cases)
        server.execute(agent.agentId, { taskId: name.replaceAll(' ', '-'), ...request })
      for (const { name, exitCode, signal, out } of cases) {
        const taskId = name.replaceAll(' ', '-')
        const complete = await server.completed(taskId)
        t.is(complete.exitCode, exitCode, `${name}: ${complete.error} ${server.text(taskId, 'stderr')}`)
        t.is(complete.signal, signal ?? null, name)
        if (out !== undefined) t.is(server.text(taskId), out, name)
      }
    },
  )
}
