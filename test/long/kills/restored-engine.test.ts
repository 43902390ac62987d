import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { control } from '../../../src/cli/command/control.ts'
import type { RunMark } from '../../../src/core/protocol/messages.ts'
import { openJsonStore } from '../../../src/server/storage/files/store/store.ts'
import { givenMark } from '../../helpers/agents/given-mark.ts'
import { type Identity, ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask, task } from '../../helpers/clients/tasks.ts'
import { backUp } from '../../helpers/servers/backup.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const executions = (agent: ScriptedAgent, taskId: string) =>
  agent.heard.filter(({ type, payload }) => type === 'EXECUTE_SCRIPT' && payload.taskId === taskId).length

/** Links a process of web1's agent, whose journal has earlier entries. */
const link = (server: TestServer, identity: Identity, mark?: RunMark, instanceId = 'process') =>
  ScriptedAgent.link(server, identity, {
    instanceId,
    journal: { sequence: 10 },
    ...(mark === undefined ? {} : { mark }),
  })

const status = (server: TestServer) => server.data('GET', '/api/server/status')

const heartbeat = (server: TestServer, { agentId, token }: Identity, mark?: RunMark) =>
  server.api(
    'POST',
    '/api/agent/heartbeat',
    { agentId, status: 'HEALTHY', ...(mark === undefined ? {} : { mark }) },
    { authorization: `Bearer ${token}` },
  )

const confirm = (server: TestServer, cancelPending = false) =>
  control(server.dataDir, 'confirm-restore', { cancelPending })

/**
 * A server restored from a backup in which an execution is PENDING that has run since. No agent has linked to it yet. `mark` is
 * the mark that the agent journalled with the execution.
 */
async function restored(t: ExecutionContext, options: { content?: string } = {}) {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const other = await server.enroll('web2')
  const taskId = await startTask(server, [identity.hostId], { queueSeconds: 3600, ...options })
  const backup = await backUp(t, server)
  const before = await link(server, identity)
  const { mark } = await before.execution(taskId)
  before.complete(taskId, 0, { lastSequence: -1 })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
  await before.cut()
  if (!mark) throw new Error('the execution has no mark')
  await backup.restore()
  return { server, identity, other, taskId, mark, backup }
}

test('A02 executions that may have run since a backup are held from the first HELLO that proves it; new tasks run', async (t) => {
  const { server, identity, taskId, mark } = await restored(t)
  t.is((await status(server)).restore, null)
  const agent = await link(server, identity, mark)
  const next = await startTask(server, [identity.hostId])
  await agent.execution(next)
  agent.complete(next, 0, { lastSequence: -1 })
  t.is((await finished(server, next)).status, 'SUCCESS')
  t.is(executions(agent, taskId), 0)
  const { restore } = await status(server)
  t.like(restore, { hostId: identity.hostId, agentId: identity.agentId, tasks: 1, executions: 1 })
  t.regex(restore.reason, /the agent of web1 knows of later work/)
  await until('its result reports the hold', async () => {
    const [result] = (await task(server, taskId)).results
    return result?.status === 'PENDING' && /^held: .*confirm-restore/.test(result.error ?? '')
  })
  const audit = async () =>
    (await server.data('GET', '/api/audit')).content.map(({ action }: { action: string }) => action)
  await until('the audit log has an entry', async () => (await audit()).includes('restore.notice'))
  await server.restart()
  t.like((await status(server)).restore, { tasks: 1, executions: 1 }, 'the hold survives a restart')
  const again = await link(server, identity, mark)
  await again.settled()
  t.is(executions(again, taskId), 0)
  const confirmed = await confirm(server)
  t.like(confirmed, { tasks: 1, executions: 1, cancelled: false })
  await again.execution(taskId)
  again.complete(taskId, 0, { lastSequence: -1 })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
  t.is((await status(server)).restore, null)
  t.true((await audit()).includes('restore.confirm'))
  await t.throwsAsync(confirm(server), { code: 'conflict' })
})

test('A02 held executions can be cancelled instead', async (t) => {
  const { server, identity, taskId, mark } = await restored(t)
  const agent = await link(server, identity, mark)
  await agent.settled()
  await until('the restore is noticed', async () => (await status(server)).restore !== null)
  t.like(await confirm(server, true), { tasks: 1, executions: 1, cancelled: true })
  const ended = await finished(server, taskId)
  t.is(ended.status, 'CANCELLED')
  t.like(ended.results[0], { status: 'CANCELLED' })
  t.regex(ended.results[0]?.error ?? '', /restored from a backup/)
  await agent.settled()
  t.is(executions(agent, taskId), 0)
})

test('A02 a user may also cancel a held task', async (t) => {
  const { server, identity, taskId, mark } = await restored(t)
  const agent = await link(server, identity, mark)
  await agent.settled()
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  t.is((await finished(server, taskId)).status, 'CANCELLED')
})

test('A02 proof from one host holds executions of all hosts that have not linked since, even without marks of their own', async (t) => {
  const server = await startTestServer(t)
  const first = await server.enroll('web1')
  const second = await server.enroll('web2')
  const taskId = await startTask(server, [first.hostId, second.hostId], { queueSeconds: 3600 })
  const backup = await backUp(t, server)
  const before = await link(server, first)
  const { mark } = await before.execution(taskId)
  await backup.restore()
  const witness = await link(server, first, mark)
  await witness.settled()
  const innocent = await link(server, second)
  await innocent.settled()
  t.is(executions(innocent, taskId), 0)
  t.like((await status(server)).restore, { executions: 2 })
})

test("A02 a heartbeat is proof too, and no response replaces the agent's mark before the proof is on disk", async (t) => {
  const { server, identity, mark } = await restored(t)
  const beat = (said?: RunMark) => heartbeat(server, identity, said)
  t.like((await beat()).body.data.mark, (await status(server)).run)
  t.is((await beat(mark)).body.data.mark, undefined)
  await until('the restore is noticed', async () => (await status(server)).restore !== null)
  t.is((await beat(mark)).body.data.mark.run, (await status(server)).run.run)
})

test('A02 an execution sent before the backup and not received becomes LOST, and is not sent again', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await link(server, identity)
  const sent = await startTask(server, [identity.hostId])
  await agent.execution(sent)
  const backup = await backUp(t, server)
  const back = await link(server, identity)
  await back.execution(sent)
  back.complete(sent, 0, { lastSequence: -1 })
  await finished(server, sent)
  const later = await startTask(server, [identity.hostId])
  const { mark } = await back.execution(later)
  await backup.restore()
  const again = await link(server, identity, mark)
  const [result] = (await finished(server, sent)).results
  t.is(result?.status, 'LOST')
  t.regex(result?.error ?? '', /restored from a backup/)
  await again.settled()
  t.is(executions(again, sent), 0)
})

const truths = [
  ['an ordinary restart', async (server: TestServer) => server.restart()],
  [
    'several restarts',
    async (server: TestServer) => {
      await server.restart()
      await server.restart()
    },
  ],
] as const
for (const [what, happen] of truths)
  test(`A02 ${what} proves no restore: pending executions are sent`, async (t) => {
    const server = await startTestServer(t)
    const identity = await server.enroll('web1')
    const agent = await link(server, identity)
    const first = await startTask(server, [identity.hostId])
    const { mark } = await agent.execution(first)
    agent.complete(first, 0, { lastSequence: -1 })
    await agent.released(first)
    await agent.cut()
    const waiting = await startTask(server, [identity.hostId], { queueSeconds: 3600 })
    await happen(server)
    const back = await link(server, identity, mark)
    await back.execution(waiting)
    t.is((await status(server)).restore, null)
  })

test('A02 a confirmed restore is not noticed again, not even by a host that links later or after a restart', async (t) => {
  const { server, identity, other, mark } = await restored(t)
  await (await link(server, identity, mark)).settled()
  await until('the restore is noticed', async () => (await status(server)).restore !== null)
  await confirm(server)
  const lost = (run: string, sequence: number) => givenMark(server, other.agentId, { run, sequence })
  await (await link(server, other, lost('another-lost-run', 3), 'other')).settled()
  t.is((await status(server)).restore, null)
  await server.restart()
  for (const said of [mark, lost('another-lost-run', 9)])
    await (await link(server, other, said, 'other')).settled()
  t.is((await status(server)).restore, null)
  await (await link(server, other, lost('of-another-restore', 1), 'other')).settled()
  await until('another restore is noticed', async () => (await status(server)).restore !== null)
})

test('A02 proofs of several agents at once are all remembered, and a concurrent confirmation stays valid', async (t) => {
  const { server } = await restored(t)
  const witnesses: Identity[] = []
  for (let n = 0; n < 12; n++) witnesses.push(await server.enroll(`witness${n}`))
  const prove = (some: Identity[]) =>
    Promise.all(
      some.map((one) => {
        const lost = { run: `lost-with-${one.agentId}`, sequence: 1 }
        return heartbeat(server, one, givenMark(server, one.agentId, lost))
      }),
    )
  await prove(witnesses.slice(0, 3))
  await until('the restore is noticed', async () => (await status(server)).restore !== null)
  await Promise.all([prove(witnesses.slice(3, 6)), confirm(server), prove(witnesses.slice(6))])
  for (const what of ['at once', 'after a restart']) {
    t.is((await status(server)).restore, null, what)
    await prove(witnesses)
    await server.restart()
  }
  t.is((await status(server)).restore, null)
})

test('A02 a server start remembers one unknown run per agent, and writes nothing for further ones', async (t) => {
  const { server, identity, other, mark } = await restored(t)
  const remembered = async () => {
    await server.stop()
    const store = await openJsonStore({ directory: join(server.dataDir, 'store') })
    const notes = (await store.query('runs')).items.flatMap(({ restore }) => restore ?? [])
    await store.close()
    await server.restart()
    return notes.map(({ strangers }) => strangers)
  }
  const invent = (what: string) =>
    Promise.all(
      [1, 2, 3].map((sequence) => {
        const lost = givenMark(server, other.agentId, { run: `${what}-${sequence}`, sequence })
        return heartbeat(server, other, lost)
      }),
    )
  await heartbeat(server, identity, mark)
  await until('the restore is noticed', async () => (await status(server)).restore !== null)
  await invent('open')
  await confirm(server)
  await invent('confirmed')
  const [strangers = [], ...more] = await remembered()
  t.deepEqual(more, [])
  t.is(strangers[0], mark.run)
  t.is(strangers.length, 2, strangers.join(' '))
  t.regex(strangers[1] ?? '', /^open-/)
})

test('A02 an agent whose mark has no MAC holds nothing of others, and gets no execution again that it got before', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await link(server, identity)
  const sent = await startTask(server, [identity.hostId])
  await agent.execution(sent)
  const backup = await backUp(t, server)
  const back = await link(server, identity)
  await back.execution(sent)
  back.complete(sent, 0, { lastSequence: -1 })
  await finished(server, sent)
  const { run, sequence } = (await heartbeat(server, identity)).body.data.mark
  await backup.restore()
  const again = await link(server, identity, { run, sequence })
  t.is((await finished(server, sent)).results[0]?.status, 'LOST')
  await again.settled()
  t.is(executions(again, sent), 0)
  t.is((await status(server)).restore, null)
})

test('A02 agents of 0.1.0 and base-protocol agents report no mark, and get the pending executions', async (t) => {
  const { server, identity, taskId } = await restored(t)
  const agent = await ScriptedAgent.link(server, identity)
  await agent.execution(taskId)
  t.is((await status(server)).restore, null)
})
