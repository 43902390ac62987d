import { existsSync } from 'node:fs'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import type { HostMetrics } from '../../../src/core/protocol/http/hosts.ts'
import { metrics } from '../../helpers/metrics/metrics.ts'
import { startInjectedServer, type TestServer } from '../../helpers/servers/server.ts'

const minute = 60_000
const iso = (at: number) => new Date(at).toISOString()

async function report(
  server: TestServer,
  identity: { agentId: string; token: string },
  at: number,
  cpu = 10,
) {
  const answer = await server.api(
    'POST',
    '/api/agent/metrics',
    { agentId: identity.agentId, ...metrics(iso(at), { cpu }) },
    { authorization: `Bearer ${identity.token}` },
  )
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
}
const history = (server: TestServer, hostId: number, query = ''): Promise<HostMetrics> =>
  server.data('GET', `/api/hosts/${hostId}/metrics${query}`)

test('history includes late reports from a buffer, in order, and survives a restart', async (t) => {
  const server = await startInjectedServer(t)
  const agent = await server.enroll('web1')
  const now = Date.now()
  t.like(await history(server, agent.hostId), { hostId: agent.hostId, samples: [] })
  await report(server, agent, now, 90)
  for (const ago of [180, 120, 60]) await report(server, agent, now - ago * minute, ago / 10)
  const cpuOf = ({ samples }: HostMetrics) => samples.map(({ cpu }) => cpu.usagePercent)
  t.deepEqual(cpuOf(await history(server, agent.hostId)), [18, 12, 6, 90])
  await server.restart()
  t.deepEqual(cpuOf(await history(server, agent.hostId)), [18, 12, 6, 90])
  const { metrics: last } = await server.data('GET', `/api/hosts/${agent.hostId}`)
  t.is(last, null, 'the last report is of this run of the server')
})

test('history is down-sampled to the requested number of points, as averages of equal parts of the range', async (t) => {
  const server = await startInjectedServer(t)
  const agent = await server.enroll('web1')
  const to = Date.now()
  const from = to - 100 * minute
  await Promise.all(
    Array.from({ length: 100 }, (_, n) => report(server, agent, from + n * minute + 1, n % 10)),
  )
  const range = `?from=${iso(from)}&to=${iso(to)}`
  const thinned = await history(server, agent.hostId, `${range}&points=10`)
  t.like(thinned, { hostId: agent.hostId, from: iso(from), to: iso(to) })
  t.deepEqual(
    thinned.samples.map(({ timestamp, cpu }) => [Date.parse(timestamp), cpu.usagePercent]),
    Array.from({ length: 10 }, (_, n) => [from + n * 10 * minute, 4.5]),
  )
  t.is((await history(server, agent.hostId, range)).samples.length, 100)
  t.is((await history(server, agent.hostId, `${range}&points=1`)).samples.length, 1)
  t.is((await history(server, agent.hostId, `?to=${iso(from)}`)).samples.length, 0)
})

test('a range that starts before the retention starts at the retention limit', async (t) => {
  const server = await startInjectedServer(t)
  const agent = await server.enroll('web1')
  const { from, to } = await history(server, agent.hostId, '?from=1970-01-01T00:00:00Z')
  t.is(Date.parse(to) - Date.parse(from), 7 * 24 * 60 * minute)
  const past = await history(server, agent.hostId, '?from=2001-01-01T00:00:00Z&to=2001-01-02T00:00:00Z')
  t.like(past, { from: '2001-01-01T00:00:00.000Z', to: '2001-01-02T00:00:00.000Z', samples: [] })
})

test('a range that ends in the future ends now, so that no points are spent on the future', async (t) => {
  const server = await startInjectedServer(t)
  const agent = await server.enroll('web1')
  const now = Date.now()
  for (const ago of [40, 30, 20, 10]) await report(server, agent, now - ago * minute)
  const range = `?from=${iso(now - 50 * minute)}&to=2099-01-01T00:00:00Z&points=10`
  const { to, samples } = await history(server, agent.hostId, range)
  t.true(Date.parse(to) <= Date.now())
  t.is(samples.length, 4)
  const future = await history(server, agent.hostId, '?from=2099-01-01T00:00:00Z&to=2099-01-02T00:00:00Z')
  t.like(future, { from: '2099-01-01T00:00:00.000Z', to: '2099-01-02T00:00:00.000Z', samples: [] })
})

test('an invalid query is a 400 that names the field', async (t) => {
  const server = await startInjectedServer(t)
  const { id } = await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '10.0.0.1' })
  const cases = {
    'points=0': 'points',
    'points=2001': 'points',
    'points=many': 'points',
    'from=yesterday': 'from',
    'to=': 'to',
    'since=1h': 'since',
    'from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z': 'from',
  }
  for (const [query, field] of Object.entries(cases)) {
    const { status, body } = await server.api('GET', `/api/hosts/${id}/metrics?${query}`)
    t.is(status, 400, query)
    t.deepEqual(
      body.errors?.map((fault) => fault.field),
      [field],
      query,
    )
  }
  t.is((await server.api('GET', '/api/hosts/999/metrics?points=0')).status, 404)
  t.is((await server.api('POST', `/api/hosts/${id}/metrics`, {})).status, 405)
  const agent = await server.enroll('web2')
  const own = { authorization: `Bearer ${agent.token}` }
  t.is((await server.api('GET', `/api/hosts/${agent.hostId}/metrics`, undefined, own)).status, 403)
})

test("F04 a disk too full for history affects neither heartbeats nor reports nor the server's shutdown", async (t) => {
  const server = await startInjectedServer(t)
  const agent = await server.enroll('web1')
  const directory = join(server.dataDir, 'metrics', String(agent.hostId))
  await mkdir(directory, { recursive: true })
  const days = new Set([Date.now(), Date.now() + minute].map((at) => iso(at).slice(0, 10)))
  for (const day of days) await symlink('/dev/full', join(directory, `${day}.jsonl`))
  await report(server, agent, Date.now(), 55)
  const own = { authorization: `Bearer ${agent.token}` }
  const beat = { agentId: agent.agentId, status: 'HEALTHY' }
  t.is((await server.api('POST', '/api/agent/heartbeat', beat, own)).status, 200)
  t.is((await server.data('GET', `/api/hosts/${agent.hostId}`)).metrics.cpu.usagePercent, 55)
  await server.stop()
  t.true(existsSync(join(server.dataDir, 'presence.json')))
})

test('deleting a host deletes its history', async (t) => {
  const server = await startInjectedServer(t)
  const agent = await server.enroll('web1')
  await report(server, agent, Date.now())
  await server.restart()
  const directory = join(server.dataDir, 'metrics', String(agent.hostId))
  t.true(existsSync(directory))
  await report(server, agent, Date.now())
  await server.data('DELETE', `/api/hosts/${agent.hostId}`)
  t.false(existsSync(directory))
  await server.stop()
  t.false(existsSync(directory))
})

test('S10 an hour of buffered reports is kept; more, sent faster than configured, is dropped', async (t) => {
  const server = await startInjectedServer(t)
  const agent = await server.enroll('web1')
  const now = Date.now()
  for (let n = 0; n < 20; n++)
    await Promise.all(Array.from({ length: 41 }, (_, m) => report(server, agent, now - (n * 41 + m) * 1000)))
  const range = `?from=${iso(now - 900_000)}&to=${iso(now + 1)}&points=2000`
  const kept = (await history(server, agent.hostId, range)).samples.length
  t.true(kept >= 780 && kept < 800, `${kept} of 820 are kept`)
})
