import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { Server } from '../../../src/core/protocol/http/server.ts'
import { lease } from '../../../src/server/storage/ports/cluster.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { soundAudit } from '../../helpers/audit/sound-audit.ts'
import { entries, finished, running, startTask, statusesOf, task } from '../../helpers/clients/tasks.ts'
import { fakedBy, noFaketime, setFaked } from '../../helpers/faults/faketime.ts'
import { postgresTest, sharedPostgres } from '../../helpers/servers/postgres.ts'
import { type ServerProcess, startServerProcess } from '../../helpers/servers/server-process.ts'
import { skipped } from '../../helpers/skipped.ts'
import { until } from '../../helpers/until.ts'

const test = noFaketime === null ? postgresTest : skipped(`the clock cannot be faked here: ${noFaketime}`)

const offsets = ['+10m', '-10m', '+0m'] as const
/** Milliseconds: less than the clocks' offsets and more than the time of a response. */
const near = 60_000

type Three = readonly [ServerProcess, ServerProcess, ServerProcess]

/**
 * Servers of one store with clocks ten minutes ahead, ten minutes behind, and equal to that of
 * PostgreSQL and the agents.
 */
async function threeServers(t: ExecutionContext): Promise<Three> {
  const postgres = await sharedPostgres()
  const store = await postgres.database()
  const directory = temporaryDirectory(t)
  const servers: ServerProcess[] = []
  for (const [at, offset] of offsets.entries()) {
    const file = join(directory, `clock${at}`)
    await setFaked(file, offset)
    const options = { store, keysDir: join(directory, 'keys'), serverName: `server${at + 1}` }
    const server = await startServerProcess(t, { logLevel: 'INFO', options })
    await server.kill()
    await server.start(fakedBy(file))
    servers.push(server)
  }
  return servers as unknown as Three
}

const isNear = (t: ExecutionContext, time: string | null, what: string) =>
  t.true(Math.abs(Date.parse(time ?? '') - Date.now()) < near, `${what}: ${time}`)

/** The time of the server's machine, read from its log. */
const machineTime = (server: ServerProcess): number =>
  Date.parse(JSON.parse(server.logged().trim().split('\n').at(-1) ?? '{}').time)

test("F25 servers whose clocks are ten minutes ahead and behind follow PostgreSQL's clock for leases, waits, signatures and order", async (t) => {
  t.timeout(300_000)
  const servers = await threeServers(t)
  const [a, b, c] = servers
  const apart = (machineTime(a) - machineTime(b)) / 60_000
  t.true(apart > 19 && apart < 21, `their clocks are ${apart} minutes apart`)

  for (const server of servers) {
    const { content }: { content: Server[] } = await server.data('GET', '/api/servers')
    t.deepEqual(
      content.map(({ name, faults }) => ({ name, faults })),
      ['server1', 'server2', 'server3'].map((name) => ({ name, faults: [] })),
    )
    for (const { leaseUntil, startedAt } of content) {
      const left = Date.parse(leaseUntil ?? '') - Date.now()
      t.true(left > 0 && left <= lease + 1000, `a lease of ${left} ms`)
      isNear(t, startedAt, 'startedAt')
    }
    isNear(t, (await server.data('GET', '/api/server')).serverTime, 'serverTime')
  }

  // Agents check signatures and their expiry against their own clocks.
  const agents = [
    await realAgent(t, a, { hostname: 'web1' }),
    await realAgent(t, b, { hostname: 'web2' }),
    await realAgent(t, c, { hostname: 'web3' }),
  ]
  const all = (status: string) => agents.map(() => status)
  const hostIds = agents.map(({ hostId }) => hostId)
  const script = { content: 'echo "$RSM_HOST"; sleep 1' }
  const made: string[] = []
  for (let round = 0; round < 2; round += 1)
    for (const server of servers) made.push(await startTask(server, hostIds, { script }))
  for (const taskId of made) {
    const ended = await finished(c, taskId)
    t.deepEqual(statusesOf(ended), all('SUCCESS'), JSON.stringify(ended.results))
    for (const { startedAt, completedAt, duration } of ended.results) {
      isNear(t, startedAt, 'startedAt')
      t.true((completedAt ?? '') >= (startedAt ?? '~'))
      t.true((duration ?? -1) >= 900 && (duration ?? -1) < near, `${duration} ms`)
    }
    isNear(t, ended.createdAt, 'createdAt')
    const said = (await entries(b, taskId)).map(({ data }) => data).toSorted()
    t.deepEqual(said, ['web1\n', 'web2\n', 'web3\n'])
  }
  for (const server of servers) {
    const { content } = await server.data('GET', '/api/tasks')
    t.deepEqual(
      content.map(({ taskId }: { taskId: string }) => taskId),
      made.toReversed(),
    )
  }

  // Waits: for a host that does not connect, for the pause between batches, for a script that exceeds its timeout.
  const away = (await c.enroll('away')).hostId
  for (const server of servers) {
    const began = performance.now()
    const waits = { queueSeconds: 3 }
    const pauses = { strategy: 'ROLLING', batchSize: 1, pauseSeconds: 2 }
    const [late, paused, long] = [
      await startTask(server, [away], waits),
      await startTask(server, hostIds, pauses),
      await startTask(server, hostIds, { script: { content: 'sleep 60' }, timeout: 2 }),
    ]
    t.deepEqual(statusesOf(await finished(c, long)), all('TIMEOUT'))
    t.deepEqual(statusesOf(await finished(c, paused)), all('SUCCESS'))
    t.deepEqual(statusesOf(await finished(c, late)), ['UNREACHABLE'])
    const took = performance.now() - began
    t.true(took > 2900 && took < 30_000, `${took} ms`)
    for (const taskId of [late, paused, long]) {
      const { duration } = await task(c, taskId)
      t.true((duration ?? 0) >= 1900 && (duration ?? 0) < 30_000, `${duration} ms`)
    }
  }

  // A token of one server is valid at the others and expires on time.
  const { token } = await a.data('POST', '/api/tokens', { name: 'day', expiresInDays: 1 })
  for (const server of servers) {
    const asked = await server.api('GET', '/api/hosts', undefined, { authorization: `Bearer ${token}` })
    t.is(asked.status, 200)
  }

  // No server takes over from one whose clock is wrong; a killed server's tasks go to the others.
  const others = hostIds.slice(1)
  const sleeps = { script: { content: 'sleep 5' } }
  const kept = await startTask(b, others, { script: { content: 'sleep 15' } })
  const left = await startTask(a, others, { ...sleeps, strategy: 'SEQUENTIAL' })
  await running(c, kept, 2)
  await running(c, left, 1)
  t.is((await task(c, left)).server, 'server1')
  await a.kill()
  await until('another server has the task', async () => {
    const { server } = await task(c, left)
    return server === 'server2' || server === 'server3'
  })
  t.is((await task(c, kept)).server, 'server2')
  for (const taskId of [left, kept]) {
    const { results } = await finished(c, taskId)
    t.deepEqual(
      results.map(({ status, error }) => ({ status, error })),
      others.map(() => ({ status: 'SUCCESS', error: null })),
    )
  }

  const { content } = await c.data('GET', '/api/audit?size=500')
  const times = content.map(({ at }: { at: string }) => at)
  t.true(times.length > 20)
  t.deepEqual(times, times.toSorted().toReversed())
  await soundAudit(t, c)
})
