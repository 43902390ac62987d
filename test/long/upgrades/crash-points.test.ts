import { once } from 'node:events'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { cleanEnv, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { entries, finished, startTask } from '../../helpers/clients/tasks.ts'
import { installVersion } from '../../helpers/programs/other-version.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

/** A server, and an installed agent; `run` starts it from the command line and settles once it is linked. */
async function installed(t: ExecutionContext) {
  const server = await startTestServer(t)
  const root = temporaryDirectory(t)
  const prefix = join(root, 'rsm')
  await installVersion(prefix, '0.0.1')
  const { token } = await server.data('POST', '/api/enrollment-tokens', {})
  const env = cleanEnv(root, { RSM_AGENT_ENROLL_TOKEN: token, RSM_AGENT_LOG_LEVEL: 'ERROR' })
  const host = async () => (await server.data('GET', '/api/hosts')).content[0]
  const run = async () => {
    const argv = ['agent', 'run', '--url', server.url, '--hostname', 'web1', '--data-dir', join(root, 'data')]
    const agent = startRsm(argv, env, { program: join(prefix, 'bin/run.js'), detached: true })
    t.teardown(async () => {
      agent.child.kill('SIGKILL')
      await agent.done
    })
    await agent.shows('is host')
    await until('it is linked', async () => (await host())?.agent?.connected === true)
    return agent
  }
  return { server, root, prefix, run, host }
}

/** Writes a line now and another one after `go`; appends to `starts`, to detect a second start. */
const script = (root: string) =>
  `echo "$0" >> ${root}/starts; echo before; while [ ! -e ${root}/go ]; do sleep 0.05; done; echo after; exit 9`

async function begun(server: Parameters<typeof entries>[0], taskId: string): Promise<void> {
  await until('it has begun', async () => (await entries(server, taskId)).length > 0)
}

async function isTrue(t: ExecutionContext, server: Parameters<typeof entries>[0], taskId: string) {
  const [result] = (await finished(server, taskId)).results
  t.is(result?.status, 'FAILED')
  t.is(result?.exitCode, 9)
  t.true(result?.outputComplete)
  t.is((await entries(server, taskId)).map(({ data }) => data).join(''), 'before\nafter\n')
}

test('F18 an agent upgraded in place while scripts run loses nothing and starts nothing twice', async (t) => {
  const { server, root, prefix, run, host } = await installed(t)
  const former = await run()
  const { id } = await host()
  const tasks = [await startTask(server, [id], { script: { content: script(root) } })]
  await begun(server, tasks[0] ?? '')
  await installVersion(`${prefix}.new`, '0.0.2')
  await rename(prefix, `${prefix}.old`)
  await rename(`${prefix}.new`, prefix)
  await rm(`${prefix}.old`, { recursive: true })
  // Between swap and restart, the old agent continues without its files.
  tasks.push(await startTask(server, [id], { script: { content: script(root) } }))
  await begun(server, tasks[1] ?? '')
  former.child.kill('SIGTERM')
  t.is((await former.done).exit, 0)
  const ended = await startTask(server, [id], { script: { content: 'exit 5' } })
  await writeFile(join(root, 'go'), '')
  await run()
  for (const taskId of tasks) await isTrue(t, server, taskId)
  t.is((await finished(server, ended)).results[0]?.exitCode, 5)
  t.is((await readFile(join(root, 'starts'), 'utf8')).trim().split('\n').length, 2)
  t.is((await host()).agent.agentVersion, '0.0.2')
})

for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM', 'SIGKILL'] as const)
  test(`F18 ${signal} to the agent's process group leaves the script to the next agent`, async (t) => {
    const { server, root, run, host } = await installed(t)
    const former = await run()
    const { id } = await host()
    const taskId = await startTask(server, [id], { script: { content: script(root) } })
    await begun(server, taskId)
    const gone = once(former.child, 'exit')
    // Like a terminal that is closed or gets Ctrl-C.
    process.kill(-(former.child.pid ?? 0), signal)
    await gone
    await writeFile(join(root, 'go'), '')
    await run()
    await isTrue(t, server, taskId)
    t.is((await readFile(join(root, 'starts'), 'utf8')).trim().split('\n').length, 1)
  })
