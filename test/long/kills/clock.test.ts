import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { opaqueId } from '../../../src/server/storage/ids.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { entries, finished, startTask } from '../../helpers/clients/tasks.ts'
import { fakedBy, noFaketime, setFaked } from '../../helpers/faults/faketime.ts'
import { metrics } from '../../helpers/metrics/metrics.ts'
import { adminLogin } from '../../helpers/servers/server.ts'
import { type ServerProcess, startServerProcess } from '../../helpers/servers/server-process.ts'
import { recordingOf } from '../../helpers/terminals/terminals.ts'
import { until } from '../../helpers/until.ts'

/** Skipped (2026-11-22) where the clock of a process cannot be faked. */
const withFaketime = noFaketime === null ? test : test.skip

const keyed = { 'idempotency-key': 'once' }
const body = (hostId: number) => ({ script: { content: 'echo once' }, target: { hostIds: [hostId] } })

/** A server with one of everything that a sweep removes by age. */
async function filled(t: ExecutionContext, firstSweepAfter: number) {
  const server = await startServerProcess(t, { firstSweepAfter, logLevel: 'INFO' })
  const clock = join(server.dataDir, 'faketime')
  await setFaked(clock, '+0d')
  const agent = await realAgent(t, server)
  const { hostId } = agent
  const { body: first } = await server.api('POST', '/api/tasks', body(hostId), keyed)
  const taskId: string = first.data.taskId
  await finished(server, taskId)
  const { sessionId } = await server.data('POST', '/api/terminals', {
    hostId,
    cols: 80,
    rows: 24,
    command: 'echo shown',
  })
  await until('the session has ended', async () => {
    return (await server.data('GET', `/api/terminals/${sessionId}`)).status !== 'OPEN'
  })
  const other = await server.enroll('metered')
  const sample = { agentId: other.agentId, ...metrics(new Date().toISOString(), { cpu: 42 }) }
  await server.api('POST', '/api/agent/metrics', sample, { authorization: `Bearer ${other.token}` })
  const { token } = await server.data('POST', '/api/tokens', { name: 'pat', expiresInDays: 30 })
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', {})
  await until('the sample is on disk', async () => {
    return (await readdir(join(server.dataDir, 'metrics', String(other.hostId))).catch(() => [])).length > 0
  })
  await agent.stop()

  let marks = 0
  return {
    server,
    taskId,
    hostId,
    /** Starts the server with this offset of its clock. */
    async start(offset: string): Promise<void> {
      await setFaked(clock, offset)
      await server.start(fakedBy(clock))
    },
    set: (offset: string) => setFaked(clock, offset),
    async logIn() {
      server.token = ''
      server.token = (await server.data('POST', '/api/auth/login', adminLogin)).token
    },
    /** Call before a start: the returned function waits for the first sweep, by an orphan that the sweep moves aside. */
    async mark(): Promise<() => Promise<void>> {
      const orphan = opaqueId(Date.now() + ++marks)
      await mkdir(join(server.dataDir, 'tasks', orphan))
      await writeFile(join(server.dataDir, 'tasks', orphan, 'output.log'), '')
      return async () => {
        await until(
          'the first sweep',
          async () => !(await readdir(join(server.dataDir, 'tasks'))).includes(orphan),
        )
        // The other sweeps take no longer.
        await new Promise((resolve) => setTimeout(resolve, 500))
      }
    },
    async isAllServed(): Promise<void> {
      t.is((await entries(server, taskId)).map(({ data }) => data).join(''), 'once\n')
      t.is((await server.data('GET', `/api/tasks/${taskId}`)).status, 'SUCCESS')
      t.regex((await recordingOf(server, sessionId)).output, /shown/)
      const { samples } = await server.data('GET', `/api/hosts/${other.hostId}/metrics`)
      t.is(samples.length, 1)
      const session = server.token
      server.token = token
      t.is((await server.api('GET', '/api/hosts')).status, 200, 'the personal access token')
      server.token = session
      const { content } = await server.data('GET', '/api/enrollment-tokens?size=100')
      t.is(content.length, 3)
      const registration = {
        agentId: 'late',
        hostname: 'late',
        ipAddresses: [],
        os: 'linux',
        arch: 'x64',
        agentVersion: 't',
      }
      const enrolled = await server.api('POST', '/api/agent/register', registration, {
        authorization: `Bearer ${enrollToken}`,
      })
      t.is(enrolled.status, 200, 'the enrollment token')
      const again = await server.api('POST', '/api/tasks', body(hostId), keyed)
      t.is(again.body.data.taskId, taskId, 'the idempotency key')
    },
  }
}

const audited = async (server: ServerProcess, action: string) =>
  (await server.data('GET', `/api/audit?action=${action}`)).content as { detail: Record<string, unknown> }[]

for (const offset of ['+40d', '-40d'])
  withFaketime(
    `A03 F13 a start with a clock that is off by ${offset} removes nothing; all data is served once the clock is right`,
    async (t) => {
      const data = await filled(t, 200)
      const { server, taskId, hostId } = data
      await server.kill()
      const swept = await data.mark()
      await data.start(offset)
      await swept()
      await data.logIn()
      t.is((await entries(server, taskId)).map(({ data }) => data).join(''), 'once\n')
      const [doubt] = await audited(server, 'clock.doubt')
      t.is(Math.round(Number(doubt?.detail['aheadSeconds']) / 86_400), Number.parseInt(offset, 10))
      t.regex(server.logged(), /"the clock is 40 days (ahead of|behind) what it should show/)
      const made = await startTask(server, [hostId], { queueSeconds: 0 })
      await finished(server, made)
      await server.kill()
      const sweptAgain = await data.mark()
      await data.start('+0d')
      await sweptAgain()
      await data.logIn()
      await data.isAllServed()
      t.is((await server.data('GET', `/api/tasks/${made}`)).taskId, made, 'data made meanwhile is kept, too')
      t.is((await audited(server, 'clock.agree')).length, 1)
      const newest = await startTask(server, [hostId], { queueSeconds: 0 })
      const { content } = await server.data('GET', '/api/tasks')
      t.deepEqual(
        content.map((task: { taskId: string }) => task.taskId),
        [newest, made, taskId],
      )
    },
  )

for (const offset of ['+40d', '-40d'])
  withFaketime(
    `A03 F13 a step of the clock by ${offset} under a running server removes nothing`,
    async (t) => {
      const data = await filled(t, 3000)
      const { server } = data
      await server.kill()
      const swept = await data.mark()
      await data.start('+0d')
      await data.set(offset)
      await swept()
      await data.set('+0d')
      await data.logIn()
      await data.isAllServed()
      t.is((await audited(server, 'clock.doubt')).length, 1)
      t.is((await audited(server, 'clock.agree')).length, 1)
    },
  )
