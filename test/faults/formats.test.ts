import { execFile } from 'node:child_process'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { startAgent } from '../../src/agent/main.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { agentOptions } from '../helpers/agents/agent.ts'
import { entries, finished, startTask, task } from '../helpers/clients/tasks.ts'
import { startTestServer, type TestServer } from '../helpers/servers/server.ts'
import { until } from '../helpers/until.ts'

const run = promisify(execFile)

/** Data of older versions, described in test/fixtures/formats/README.md. */
const generations = [
  { name: 'format-1', hasRecordings: false, hasVersions: false },
  { name: 'format-1-later', hasRecordings: true, hasVersions: true },
  { name: 'format-2', hasRecordings: true, hasVersions: true },
] as const

async function unpacked(t: ExecutionContext, name: string): Promise<string> {
  const directory = temporaryDirectory(t)
  const archive = resolve('test/fixtures/formats', `${name}.tar.gz`)
  await run('tar', ['-xzf', archive, '--no-same-owner', '-C', directory])
  return directory
}

const namesOf = async (server: TestServer, path: string, field: string) =>
  (await server.data('GET', path)).content.map((one: Record<string, unknown>) => one[field]).toSorted()

/** Ids of the two tasks in the data, and their count. */
async function tasksOf(server: TestServer) {
  const { content } = await server.data('GET', '/api/tasks')
  const [later, earlier] = content.map(({ taskId }: { taskId: string }) => taskId)
  return { later: later as string, earlier: earlier as string, count: content.length as number }
}

const textOf = async (server: TestServer, taskId: string, stream: string) =>
  (await entries(server, taskId))
    .filter((entry) => entry.stream === stream)
    .map(({ data }) => data)
    .join('')

for (const { name, hasRecordings, hasVersions } of generations) {
  test(`F19 the server opens its data of ${name}, complete and also after a restart`, async (t) => {
    const directory = await unpacked(t, name)
    const server = await startTestServer(t, { dataDir: join(directory, 'server') })
    for (const again of [false, true]) {
      if (again) await server.restart()
      t.deepEqual(await namesOf(server, '/api/users', 'username'), ['admin', 'olga'])
      t.like(await server.data('GET', '/api/hosts/1'), {
        hostname: 'web1',
        tags: { role: 'web' },
        agent: { agentId: 'agent-web1' },
      })
      t.deepEqual(await namesOf(server, '/api/clusters', 'name'), ['webs'])
      t.like(await server.data('GET', '/api/scripts/1'), { name: 'deploy', content: 'echo two', version: 2 })
      const { earlier, later, count } = await tasksOf(server)
      t.is(count, 2)
      t.is((await server.data('GET', '/api/tasks?hostId=1')).totalElements, 2)
      t.is((await server.data('GET', '/api/tasks?hostId=2')).totalElements, 0)
      t.like((await task(server, earlier)).results[0], {
        status: 'FAILED',
        exitCode: 3,
        outputComplete: true,
      })
      t.is(await textOf(server, earlier, 'stdout'), 'out\ngrößer\n')
      t.is(await textOf(server, earlier, 'stderr'), 'err\n')
      t.is((await task(server, later)).status, 'RUNNING')
      t.is(await textOf(server, later, 'stdout'), 'before\n')
      if (hasVersions) t.is((await server.data('GET', '/api/scripts/1/versions/1')).content, 'echo one')
      if (!hasRecordings) continue
      const [session] = (await server.data('GET', '/api/terminals')).content
      t.regex(await server.data('GET', `/api/terminals/${session.sessionId}/recording`), /recorded/)
    }
    await server.stop()
    const doctor = await runRsm(
      ['server', 'doctor', '--data-dir', server.dataDir],
      cleanEnv(temporaryDirectory(t)),
    )
    t.is(doctor.exit, 0, doctor.stdout)
  })

  test(`F19 an agent opens its data of ${name}, delivers an unreported end, and runs scripts`, async (t) => {
    const directory = await unpacked(t, name)
    const server = await startTestServer(t, { dataDir: join(directory, 'server') })
    const { later } = await tasksOf(server)
    const agent = await startAgent(agentOptions(server, join(directory, 'agent')))
    t.teardown(() => agent.stop())
    const ended = await finished(server, later)
    t.like(ended.results[0], { status: 'FAILED', exitCode: 9, outputComplete: true })
    t.is(await textOf(server, later, 'stdout'), 'before\nafter\n')
    const next = await startTask(server, [1], { script: { content: 'echo new; exit 5' } })
    t.like((await finished(server, next)).results[0], { status: 'FAILED', exitCode: 5 })
    await until('it is ONLINE', async () => (await server.data('GET', '/api/hosts/1')).status === 'ONLINE')
  })

  test(`F19 the command line reads its contexts of ${name}`, async (t) => {
    const directory = await unpacked(t, name)
    const env = cleanEnv(directory, { XDG_CONFIG_HOME: join(directory, 'config') })
    const { exit, stdout, stderr } = await runRsm(['context', 'list', '--json'], env)
    t.is(exit, 0, stderr)
    t.regex(stdout, /http:\/\/127\.0\.0\.1:18080/)
  })
}
