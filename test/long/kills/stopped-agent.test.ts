import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import type { Host } from '../../../src/core/protocol/http/hosts.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { loggedAgent } from '../../helpers/agents/logged-agent.ts'
import { finished, running, startTask } from '../../helpers/clients/tasks.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

/** ONLINE, or WARNING only because other tests keep this machine busy. */
const isHeard = ({ status, statusReason }: Host) =>
  status === 'ONLINE' ||
  (status === 'WARNING' && /^(?:(?:cpu|memory|disk \S+) \d+ %(?:, )?)+$/.test(statusReason ?? ''))

const stopped = 5 * 60_000 + 5_000

test('F13 after SIGSTOP of an agent for 5 minutes results are true, a task sent meanwhile runs once, and the host is ONLINE again', async (t) => {
  t.timeout(540_000)
  const server = await startServerProcess(t)
  const root = await temporaryDirectory(t)
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', {})
  const agent = await loggedAgent(t, server, join(root, 'web1'), { enrollToken, hostname: 'web1' })
  await until('the agent is linked', () => agent.count('linked to the server') === 1)
  const host = async () => (await server.data('GET', '/api/hosts')).content[0]
  const { id } = await host()
  const start = (content: string, timeout: number) =>
    startTask(server, [id], { script: { content: `echo "$0" >> ${root}/starts\n${content}` }, timeout })
  const inTime = await start('echo one; sleep 20; echo two; exit 3', 40)
  const tooLong = await start('echo one; sleep 3600', 60)
  const goesOn = await start(`echo one; while [ ! -e ${root}/go ]; do sleep 1; done; echo two`, 3600)
  for (const taskId of [inTime, tooLong, goesOn]) await running(server, taskId)
  await until(
    'all scripts run',
    async () => (await readFile(join(root, 'starts'), 'utf8')).split('\n').length === 4,
  )
  agent.child.kill('SIGSTOP')
  // Sent over a link that looks alive: once it is read its signature has expired and the link is closed.
  const meanwhile = await start('echo late; exit 8', 60)
  await running(server, meanwhile)
  await delay(stopped)
  t.is((await host()).status, 'OFFLINE', 'five minutes without a heartbeat')
  agent.child.kill('SIGCONT')
  const began = performance.now()
  await until('the host is ONLINE again', async () => isHeard(await host()))
  t.log(`ONLINE ${Math.round(performance.now() - began)} ms after SIGCONT`)
  const [one] = (await finished(server, inTime)).results
  t.is(one?.exitCode, 3)
  t.true((one?.duration ?? 0) >= 19_000 && (one?.duration ?? 0) < 40_000, `${one?.duration} ms`)
  const [two] = (await finished(server, tooLong)).results
  t.is(two?.status, 'TIMEOUT')
  const late = (await finished(server, meanwhile)).results[0]
  t.is(late?.exitCode, 8, late?.error ?? '')
  await server.data('POST', `/api/tasks/${goesOn}/cancel`)
  t.is((await finished(server, goesOn)).status, 'CANCELLED')
  const starts = (await readFile(join(root, 'starts'), 'utf8')).trim().split('\n')
  t.is(new Set(starts).size, 4)
  t.is(starts.length, 4)
})
