import test, { type ExecutionContext } from 'ava'
import type { Task } from '../../src/core/protocol/http/tasks.ts'
import { temporaryDirectory } from '../fixtures/rsm.ts'
import { ScriptedAgent } from '../helpers/agents/scripted-agent.ts'
import { commandLine, viewerToken } from '../helpers/clients/command-line.ts'
import { finished, startTask } from '../helpers/clients/tasks.ts'
import { startTestServer } from '../helpers/servers/server.ts'
import { hasTerminal, runOnTerminal } from '../helpers/terminals/terminal.ts'

const onTerminal = hasTerminal ? test : test.skip

/** A task that failed on web2, the second of its two hosts; `exits` holds the exit codes of later runs there. */
async function failedTask(t: ExecutionContext, options: Record<string, unknown> = {}) {
  const server = await startTestServer(t)
  const exits = [3]
  const secrets: unknown[] = []
  const hostIds: number[] = []
  for (const hostname of ['web1', 'web2']) {
    const identity = await server.enroll(hostname)
    hostIds.push(identity.hostId)
    const agent = await ScriptedAgent.link(server, identity)
    agent.serve(({ params }) => {
      if (hostname === 'web1') return {}
      secrets.push(params?.['DB_PASSWORD'])
      return { exitCode: exits.shift() ?? 0, output: 'worked\n' }
    })
  }
  const taskId = await startTask(server, hostIds, options)
  t.is((await finished(server, taskId)).status, 'FAILED')
  const newest = async (): Promise<Task> => (await server.data('GET', '/api/tasks')).content[0]
  return { server, taskId, exits, secrets, newest, rsm: commandLine(t, server) }
}

test('tasks retry runs on the hosts that did not succeed, and prints and exits like exec', async (t) => {
  const { taskId, rsm, exits, newest } = await failedTask(t)
  exits.push(7)
  const failed = await rsm(['tasks', 'retry', taskId])
  t.is(failed.exit, 7, failed.stderr)
  t.is(failed.stdout, 'web2: worked\n')
  const again = (await newest()).taskId
  t.true(failed.stderr.startsWith(`rsm: retry of ${taskId} on 1 host: task ${again}\n`), failed.stderr)
  t.regex(failed.stderr, /web2: FAILED, exit 7\nrsm: 1 host: FAILED/)
  t.regex((await rsm(['tasks', 'show', again])).stdout, new RegExp(`^retry of +${taskId}$`, 'm'))

  const key = ['--idempotency-key', 'k1', '--detach']
  const detached = await rsm(['tasks', 'retry', again, ...key])
  t.is(detached.exit, 0, detached.stderr)
  const replayed = await rsm(['tasks', 'retry', again, ...key])
  t.is(replayed.stdout, detached.stdout)
  t.true(replayed.stderr.startsWith(`rsm: this key started task ${detached.stdout.trim()} `), replayed.stderr)
  const waited = await rsm(['tasks', 'wait', detached.stdout.trim()])
  t.is(waited.exit, 0, waited.stderr)

  const latest = await rsm(['tasks', 'retry', 'latest', '--yes'])
  t.true(latest.stderr.startsWith(`rsm: latest is ${detached.stdout.trim()}: `), latest.stderr)
  t.is(latest.exit, 6, latest.stderr)
  const nothing = await rsm(['tasks', 'retry', detached.stdout.trim().slice(-8)])
  t.is(nothing.exit, 6)
  t.regex(nothing.stderr, /nothing to retry/)
  t.is((await rsm(['tasks', 'retry', 'nosuch'])).exit, 5)
})

test('secret params of a retry come from the environment only if they are named', async (t) => {
  const { taskId, rsm, secrets, newest } = await failedTask(t, { secretParams: { DB_PASSWORD: 'first' } })
  const env = { DB_PASSWORD: 'second' }
  const unnamed = await rsm(['tasks', 'retry', taskId], { env })
  t.is(unnamed.exit, 2)
  t.regex(unnamed.stderr, /--secret-param DB_PASSWORD, with DB_PASSWORD in the environment/)
  t.is((await newest()).taskId, taskId)
  const named = await rsm(['tasks', 'retry', taskId, '--secret-param', 'DB_PASSWORD', '--json'], { env })
  t.is(named.exit, 0, named.stderr)
  t.like(JSON.parse(named.stdout) as Task, { status: 'SUCCESS', retryOf: taskId, hostCount: 1 })
  t.deepEqual(secrets, ['first', 'second'])
  t.false((named.stdout + named.stderr).includes('second'))
})

onTerminal('on a terminal rsm asks for the secret params of a retry, without echo', async (t) => {
  const { taskId, server, secrets } = await failedTask(t, { secretParams: { DB_PASSWORD: 'first' } })
  const env = { RSM_URL: server.url, RSM_TOKEN: server.token, DB_PASSWORD: 'unasked' }
  const ran = await runOnTerminal(['tasks', 'retry', taskId], temporaryDirectory(t), env, [
    ['DB_PASSWORD (a secret param', 'typed\r'],
  ])
  t.is(ran.exit, 0, ran.shown)
  t.false(ran.shown.includes('typed'))
  t.deepEqual(secrets, ['first', 'typed'])
})

test('tasks retry by a VIEWER exits with 3', async (t) => {
  const { taskId, server } = await failedTask(t)
  const rsm = commandLine(t, server, await viewerToken(server))
  t.is((await rsm(['tasks', 'retry', taskId])).exit, 3)
})
