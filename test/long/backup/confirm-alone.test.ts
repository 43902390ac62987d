import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { type Identity, ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'

const rsm = (t: ExecutionContext, server: TestServer, ...words: string[]) =>
  runRsm(['server', ...words, '--data-dir', server.dataDir], cleanEnv(temporaryDirectory(t)))

/** A server restored by `rsm server restore`: in the backup one execution was PENDING, and one sent without a reply. */
async function restored(t: ExecutionContext) {
  const server = await startTestServer(t)
  const waits = await server.enroll('web1')
  const runs = await server.enroll('web2')
  const pending = await startTask(server, [waits.hostId], { queueSeconds: 3600 })
  const agent = await ScriptedAgent.link(server, runs, { instanceId: 'one', journal: { sequence: 10 } })
  const sent = await startTask(server, [runs.hostId])
  await agent.execution(sent)
  await agent.cut()
  const backup = join(temporaryDirectory(t), 'backup')
  const { exit, stderr } = await rsm(t, server, 'backup', backup)
  t.is(exit, 0, stderr)
  await server.stop()
  const keys = join(temporaryDirectory(t), 'keys')
  await cp(join(server.dataDir, 'keys'), keys, { recursive: true })
  await rm(server.dataDir, { recursive: true })
  const back = await rsm(t, server, 'restore', backup)
  t.is(back.exit, 0, back.stderr)
  await cp(keys, join(server.dataDir, 'keys'), { recursive: true })
  return { server, waits, runs, pending, sent }
}

/** Links an agent as it is now, without any execution. */
const linked = (server: TestServer, identity: Identity) =>
  ScriptedAgent.link(server, identity, { instanceId: 'one', journal: { sequence: 10 } })

test('A02 confirm-restore without a running server lets the next one start pending executions, but not sent ones', async (t) => {
  const { server, waits, runs, pending, sent } = await restored(t)
  const confirmed = await rsm(t, server, 'confirm-restore')
  t.is(confirmed.exit, 0, confirmed.stderr)
  t.is(confirmed.stdout, 'continuing with 1 execution of 1 task\n')
  t.regex((await rsm(t, server, 'confirm-restore')).stderr, /nothing is held/)
  await server.restart()
  t.is((await server.data('GET', '/api/server/status')).restore, null)
  const [first, second] = [await linked(server, waits), await linked(server, runs)]
  await first.execution(pending)
  first.complete(pending)
  t.is((await finished(server, pending)).status, 'SUCCESS')
  const lost = (await finished(server, sent)).results[0]
  t.is(lost?.status, 'LOST')
  t.regex(lost?.error ?? '', /restored from a backup/)
  await second.settled()
  t.false(second.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
  const { content } = await server.data('GET', '/api/audit?action=restore.confirm')
  t.like(content[0], {
    actor: { type: 'system' },
    outcome: 'SUCCESS',
    detail: { executions: 1 },
  })
})

test('A02 confirm-restore --cancel-pending cancels pending executions', async (t) => {
  const { server, waits, pending } = await restored(t)
  const confirmed = await rsm(t, server, 'confirm-restore', '--cancel-pending')
  t.is(confirmed.stdout, 'cancelled 1 execution of 1 task\n')
  await server.restart()
  const agent = await linked(server, waits)
  t.is((await finished(server, pending)).status, 'CANCELLED')
  await agent.settled()
  t.false(agent.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
})
