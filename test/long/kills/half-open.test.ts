import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { startAgent } from '../../../src/agent/main.ts'
import { agentOptions, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { followEvents, textOf } from '../../helpers/clients/follow.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startCutLink } from '../../helpers/faults/cut-link.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

/** Milliseconds: the limit of F11, and some more for a busy machine. */
const noticed = 45_000 + 5_000

/** A real agent over a network path that can be frozen, with a script that writes until it is stopped. */
async function writing(t: ExecutionContext) {
  const server = await startTestServer(t)
  const link = await startCutLink(t, server.url)
  const dataDir = await temporaryDirectory(t)
  const { token } = await server.data('POST', '/api/enrollment-tokens', {})
  const agent = await startAgent({ ...agentOptions(link, dataDir), enrollToken: token, hostname: 'web1' })
  t.teardown(() => agent.stop())
  const hostId = agent.hostId ?? 0
  const connected = async () => (await server.data('GET', `/api/hosts/${hostId}`)).agent.connected as boolean
  await until('the agent is linked', connected)
  const script = `n=0; while [ ! -e ${dataDir}/stop ]; do n=$((n+1)); echo "line $n"; sleep 0.2; done; echo end; exit 4`
  const taskId = await startTask(server, [hostId], { script: { content: script } })
  const url = `${server.url}/api/tasks/${taskId}/logs?follow=true`
  const headers = { authorization: `Bearer ${server.token}` }
  await followEvents(url, headers, ({ data }) => String(data.data).includes('line 3\n'))
  const exact = async () => {
    await writeFile(join(dataDir, 'stop'), '')
    const [result] = (await finished(server, taskId)).results
    t.is(result?.exitCode, 4)
    t.true(result?.outputComplete)
    const lines = textOf(await followEvents(url, headers)).split('\n')
    t.deepEqual(lines.splice(-2), ['end', ''])
    t.deepEqual(
      lines,
      lines.map((_, at) => `line ${at + 1}`),
    )
    return lines.length
  }
  return { server, link, agent, connected, exact, hostId }
}

test('F11 both sides notice within 45 s that the network drops everything; afterwards output continues exactly', async (t) => {
  t.timeout(300_000)
  const { link, agent, connected, exact, server, hostId } = await writing(t)
  link.freeze()
  const began = performance.now()
  const since = () => Math.round(performance.now() - began)
  const [ofServer, ofAgent] = await Promise.all([
    until('the server notices', async () => !(await connected()), noticed).then(since),
    until('the agent notices', () => !agent.linked(), noticed).then(since),
  ])
  t.log(`noticed by the server after ${ofServer} ms, by the agent after ${ofAgent} ms`)
  t.is((await server.data('GET', `/api/hosts/${hostId}`)).status, 'ONLINE')
  link.cut()
  link.thaw()
  const thawed = performance.now()
  await until('the agent links again', () => agent.linked())
  t.log(`linked again after ${Math.round(performance.now() - thawed)} ms`)
  t.log(`${await exact()} lines`)
})

test('F11 an agent whose link is dead links again while the server still holds the dead link', async (t) => {
  t.timeout(300_000)
  const { link, agent, exact, server, hostId } = await writing(t)
  link.freeze({ standing: true })
  const began = performance.now()
  await until('the agent notices', () => !agent.linked(), noticed)
  await until('the agent links again', () => agent.linked(), noticed)
  t.log(`linked again ${Math.round(performance.now() - began)} ms after the path went dead`)
  // Frames that were held back arrive now, on a link that was replaced.
  link.thaw()
  t.log(`${await exact()} lines`)
  const host = await server.data('GET', `/api/hosts/${hostId}`)
  t.is(host.statusReason, null)
})
