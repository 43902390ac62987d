import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { lease } from '../../../src/server/storage/ports/cluster.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { startCutLink } from '../../helpers/faults/cut-link.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

const started = sharedPostgres()

/** A server whose network path to PostgreSQL the test can cut. */
async function serverOn(t: ExecutionContext) {
  const postgres = await started
  const store = await postgres.database()
  const way = await startCutLink(t, `http://127.0.0.1:${postgres.port}`)
  const through = store.replace(`:${postgres.port}/`, `:${new URL(way.url).port}/`)
  const keysDir = join(temporaryDirectory(t), 'keys')
  const server = await startServerProcess(t, { options: { store: through, keysDir, serverName: 'a' } })
  const ready = async () => {
    const response = await fetch(`${server.url}/api/ready`)
    const { message, data } = (await response.json()) as { message: string; data: any }
    return { status: response.status, message, data, retryAfter: response.headers.get('retry-after') }
  }
  return { server, way, ready }
}

test('a ready server reports its name, the rest of its lease, its pools, and how it receives hints', async (t) => {
  const { ready } = await serverOn(t)
  await until(
    'the server hears its own mark',
    async () => (await ready()).data.server.hints.lagSeconds !== null,
  )
  const { status, data } = await ready()
  t.is(status, 200)
  const { server, ...rest } = data
  t.deepEqual(rest, { status: 'UP' })
  const { leaseSeconds, pools, hints, ...named } = server
  t.deepEqual(named, { name: 'a' })
  t.true(leaseSeconds > 0 && leaseSeconds <= lease / 1000, `${leaseSeconds}`)
  t.deepEqual(
    Object.entries(pools as Record<string, { size: number; waiting: number }>).map(
      ([name, { size, waiting }]) => ({ name, size, waiting }),
    ),
    [
      { name: 'write', size: 3, waiting: 0 },
      { name: 'api', size: 8, waiting: 0 },
    ],
  )
  t.true(pools.api.busy >= 0 && pools.api.busy <= 8)
  t.true(hints.isListening)
  t.true(hints.lagSeconds >= 0 && hints.lagSeconds < 3, `${hints.lagSeconds}`)
  t.true(hints.heardSecondsAgo >= 0 && hints.heardSecondsAgo < 15, `${hints.heardSecondsAgo}`)
})

test('F23 a server without responses from PostgreSQL is not ready, and says so, also that its lease expired', async (t) => {
  const { server, way, ready } = await serverOn(t)
  await until(
    'the server hears its own mark',
    async () => (await ready()).data.server.hints.lagSeconds !== null,
  )
  way.freeze()
  await until('the lease expires', async () => (await ready()).data.server.leaseSeconds === 0)
  const { status, message, data, retryAfter } = await ready()
  t.is(status, 503)
  t.is(retryAfter, '5')
  const reasons = [
    'PostgreSQL cannot be reached',
    'its lease expired: others may take over its tasks and links',
  ]
  t.is(data.status, 'DOWN')
  t.deepEqual(data.reasons, reasons)
  t.is(message, `The server does not accept work just now: ${reasons.join('; ')}`)
  t.is(data.server.name, 'a')
  await until('hints stop', async () => {
    const { isListening, lagSeconds } = (await ready()).data.server.hints
    return !isListening && lagSeconds === null
  })
  way.thaw()
  await until('the server is ready again', async () => (await ready()).status === 200)
  await until(
    'the server hears its own mark again',
    async () => (await ready()).data.server.hints.lagSeconds !== null,
  )
  const back = (await ready()).data
  t.true(back.server.leaseSeconds > 0)
  t.true(back.server.hints.isListening)
  t.is((await server.api('GET', '/api/health')).status, 200)
})

test('F23 a server that cannot reconnect to PostgreSQL says so before its lease expires', async (t) => {
  const { way, ready } = await serverOn(t)
  way.freeze()
  way.cut()
  await until('the server is not ready', async () => (await ready()).status === 503)
  const { data } = await ready()
  t.deepEqual(data.reasons, ['PostgreSQL cannot be reached'])
  t.true(data.server.leaseSeconds > 0)
  way.thaw()
  await until('the server is ready again', async () => (await ready()).status === 200)
})
