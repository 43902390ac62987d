import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { type LoggedAgent, loggedAgent } from '../../helpers/agents/logged-agent.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const linked = 'linked to the server'

test('F12 two agents with one identity are reported in status and audit, links do not flap, and the holder keeps its link', async (t) => {
  t.timeout(240_000)
  const server = await startTestServer(t)
  const root = await temporaryDirectory(t)
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', {})
  const first = await loggedAgent(t, server, join(root, 'first'), { enrollToken, hostname: 'web1' })
  await until('the first is linked', () => first.count(linked) === 1)
  await cp(join(root, 'first'), join(root, 'second'), { recursive: true })
  await rm(join(root, 'second', 'lock'), { force: true })
  const began = performance.now()
  const second = await loggedAgent(t, server, join(root, 'second'), { hostname: 'web1' })
  const both: LoggedAgent[] = [first, second]
  const links = () => both.reduce((sum, agent) => sum + agent.count(linked), 0)
  const host = async () => (await server.data('GET', '/api/hosts')).content[0]
  await until('the host shows a warning', async () => (await host()).status === 'WARNING')
  t.log(`reported after ${Math.round(performance.now() - began)} ms and ${links()} links`)
  t.is((await host()).statusReason, 'two agents use the identity of this host')
  t.is((await server.data('GET', '/api/hosts')).totalElements, 1)
  await until('the audit log has an entry', async () => {
    const { content } = await server.data('GET', '/api/audit?size=100')
    return content.some(({ action }: { action: string }) => action === 'agent.duplicate')
  })
  // The fourth link was the third replacement; from then on the holder of the link keeps it.
  t.is(links(), 4)
  await delay(60_000)
  t.is(links(), 4, 'no link was replaced in the minute after')
  t.is((await host()).status, 'WARNING')
  const refused = both.flatMap(({ log }) => log.filter(({ status }) => status === 409))
  t.true(refused.length >= 2 && refused.length <= 6, `${refused.length} refusals`)
  const hostId = (await host()).id
  const taskId = await startTask(server, [hostId], { script: { content: 'echo still here' } })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})
