import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { Journal } from '../../../src/agent/executions/journal.ts'
import { type RunningAgent, startAgent } from '../../../src/agent/main.ts'
import { control } from '../../../src/cli/command/control.ts'
import { agentOptions, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { backUp } from '../../helpers/servers/backup.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

const names = ['web1', 'web2', 'web3', 'web4']
const aDay = 25 * 3600_000

/** Makes a day pass in which the agent of a directory is idle, so that it forgets acknowledged executions. */
function forget(dataDir: string): void {
  let now = 0
  const journal = new Journal(join(dataDir, 'journal'), () => now)
  now = aDay
  journal.compact()
  journal.close()
}

test("A02 yesterday's backup is restored during rolling tasks: nothing starts twice, although agents forgot their executions", async (t) => {
  const server = await startTestServer(t)
  const root = await temporaryDirectory(t)
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', { maxUses: 10 })
  const agents = new Map<string, RunningAgent>()
  const start = async (name: string) => {
    const agent = await startAgent({
      ...agentOptions(server, join(root, name)),
      enrollToken,
      hostname: name,
    })
    t.teardown(() => agent.stop())
    agents.set(name, agent)
  }
  const linked = () =>
    until('all agents are linked', () => [...agents.values()].every((agent) => agent.linked()))
  for (const name of names) await start(name)
  await linked()
  const hostIds = [...agents.values()].map(({ hostId }) => Number(hostId))
  const content = `until [ -e ${root}/go ]; do sleep 0.05; done; echo $RSM_TASK_ID >> ${root}/starts`
  const rolling: string[] = []
  for (let n = 0; n < 3; n++) {
    const options = { strategy: 'ROLLING', batchSize: 1, maxFailures: 100, queueSeconds: 3600 }
    rolling.push(
      await startTask(server, hostIds, {
        ...options,
        script: { content },
      }),
    )
  }
  const starts = async () =>
    (await readFile(join(root, 'starts'), 'utf8').catch(() => '')).split('\n').slice(0, -1)
  const backup = await backUp(t, server)
  await linked()
  await writeFile(join(root, 'go'), '')
  for (const taskId of rolling) t.is((await finished(server, taskId)).status, 'SUCCESS')
  t.is((await starts()).length, 12)
  for (const agent of agents.values()) await agent.stop()
  for (const name of names) forget(join(root, name))
  await backup.restore()
  for (const name of names) await start(name)
  await linked()
  for (const name of names)
    for (const taskId of rolling)
      t.false(
        (await readFile(join(root, name, 'journal'), 'utf8')).includes(taskId),
        'the execution is forgotten',
      )
  await until(
    'the restore is noticed',
    async () => (await server.data('GET', '/api/server/status')).restore !== null,
  )
  // A new task runs on every host, after held executions would have.
  t.is((await finished(server, await startTask(server, hostIds))).status, 'SUCCESS')
  const { restore } = await server.data('GET', '/api/server/status')
  t.is(restore.tasks, 3)
  t.true(restore.executions >= 9)
  t.is((await starts()).length, 12, 'nothing started twice')
  const confirmed = await control(server.dataDir, 'confirm-restore', { cancelPending: true })
  t.true(confirmed.cancelled)
  for (const taskId of rolling) {
    const ended = await finished(server, taskId)
    t.is(ended.status, 'CANCELLED')
    for (const { status, error } of ended.results)
      t.true(status === 'CANCELLED' || status === 'LOST', `${status} ${error}`)
  }
  t.is((await starts()).length, 12)
})

test('A02 a server killed during writes gives out no mark that looks like a restore afterwards', async (t) => {
  const server = await startServerProcess(t)
  const { agentId, token } = await server.enroll('web1')
  const beat = async (mark?: object) => {
    const answer = await server.api(
      'POST',
      '/api/agent/heartbeat',
      { agentId, status: 'HEALTHY', ...(mark && { mark }) },
      { authorization: `Bearer ${token}` },
    )
    return answer.body.data.mark as { run: string; sequence: number }
  }
  for (let round = 0; round < 3; round++) {
    let newest = await beat()
    const first = newest.sequence
    const killed = new AbortController()
    const write = async (thread: number) => {
      for (let n = 0; !killed.signal.aborted; n++)
        await server
          .api('POST', '/api/hosts', { hostname: `h${round}-${thread}-${n}`, ip: '192.0.2.1' })
          .catch(() => undefined)
    }
    const writing = [0, 1, 2].map(write)
    while (newest.sequence < first + 60) newest = await beat()
    await server.kill()
    killed.abort()
    await Promise.all(writing)
    await server.start()
    const mark = await beat(newest)
    t.not(mark.run, newest.run)
    t.is((await server.data('GET', '/api/server/status')).restore, null)
  }
})
