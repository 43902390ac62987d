import test from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

/** Characters that names, tags and descriptions must not contain. */
const unseen = [
  '\u0000',
  '\u0007',
  '\u001b',
  '\u007f',
  '\u009b',
  '\u061c',
  '\u200b',
  '\u200d',
  '\u200e',
  '\u202e',
  '\u2060',
  '\u2066',
  '\ufeff',
  '\ud800',
  '\udc00',
  '\udc00\ud800',
]
/** Other scripts and whole surrogate pairs, which are allowed. */
const seen = 'Übung 日本 😀 العربية'

const host = { hostname: 'web1', ip: '10.0.0.1' }
const script = { name: 'deploy', type: 'BASH', content: 'true' }
const fields: readonly (readonly [field: string, path: string, body: (text: string) => object])[] = [
  ['tags.env', '/api/hosts', (text) => ({ ...host, tags: { env: text } })],
  ['username', '/api/hosts', (text) => ({ ...host, username: text })],
  ['name', '/api/scripts', (text) => ({ ...script, name: text })],
  ['description', '/api/scripts', (text) => ({ ...script, description: text })],
  ['category', '/api/scripts', (text) => ({ ...script, category: text })],
  ['tags[0]', '/api/scripts', (text) => ({ ...script, tags: [text] })],
  ['description', '/api/clusters', (text) => ({ name: 'c', description: text })],
  ['name', '/api/tokens', (text) => ({ name: text })],
  ['name', '/api/enrollment-tokens', (text) => ({ name: text })],
  ['tags.env', '/api/enrollment-tokens', (text) => ({ tags: { env: text } })],
  [
    'script.name',
    '/api/tasks',
    (text) => ({ script: { content: 'true', name: text }, target: { hostIds: [1] }, queueSeconds: 0 }),
  ],
]

test('A11 invisible characters in names, tags and descriptions are a 400 with the field, and nothing is created', async (t) => {
  const server = await startTestServer(t)
  for (const [field, path, body] of fields)
    for (const sign of unseen) {
      const what = `${path} ${field} ${JSON.stringify(sign)}`
      const answer = await server.api('POST', path, body(`a${sign}b`))
      t.is(answer.status, 400, what)
      t.deepEqual(answer.body.errors, [
        {
          field,
          message: 'must not contain control, bidi or zero-width characters, or half of a surrogate pair',
        },
      ])
    }
  for (const path of ['hosts', 'scripts', 'clusters', 'tasks', 'enrollment-tokens'])
    t.is((await server.data('GET', `/api/${path}`)).totalElements, 0, path)
  await server.data('POST', '/api/hosts', host)
  for (const [field, path, body] of fields) {
    if (path === '/api/hosts') continue
    const { status } = await server.api('POST', path, {
      ...body(seen),
      ...(path === '/api/scripts' && { name: `${field} ${seen}` }),
    })
    t.true(status < 300, `${path} ${field} ${status}`)
  }
  const lines = { ...script, name: 'lines', description: `${seen}\n\tand\r\nmore` }
  t.is((await server.api('POST', '/api/scripts', lines)).status, 201)
  const free = { ...script, name: 'free', content: 'echo "\u202e\u200b\u0007"' }
  t.is((await server.api('POST', '/api/scripts', free)).status, 201)
})

test('A11 unprintable characters in agent reports are replaced, never refused', async (t) => {
  const server = await startTestServer(t)
  const { token } = await server.data('POST', '/api/enrollment-tokens', {})
  const agentId = 'agent-web1'
  const odd = `a${unseen.join('-')}b`
  const facts = { os: odd, kernel: odd, arch: odd, agentVersion: odd, ipAddresses: [odd] }
  const registered = await server.api(
    'POST',
    '/api/agent/register',
    { agentId, hostname: 'web1', ...facts },
    { authorization: `Bearer ${token}` },
  )
  t.is(registered.status, 200)
  const { hostId, token: own } = registered.body.data
  const say = (path: string, body: object) =>
    server.api('POST', path, { agentId, ...body }, { authorization: `Bearer ${own}` })
  t.is((await say('/api/agent/heartbeat', { status: 'DEGRADED', reason: odd, linkFault: odd })).status, 200)
  const metrics = {
    timestamp: new Date().toISOString(),
    cpu: { usagePercent: 1, loadAvg1m: 0, loadAvg5m: 0, loadAvg15m: 0 },
    memory: { totalMB: 1, usedMB: 1, availableMB: 1, usagePercent: 5 },
    disk: [{ mountPoint: odd, totalGB: 1, usedGB: 0.5, usagePercent: 95 }],
    network: { rxBytesPerSec: 0, txBytesPerSec: 0, connections: 0 },
  }
  const more = { note: odd.repeat(2_000) }
  const padded = {
    ...metrics,
    ...more,
    cpu: { ...metrics.cpu, ...more },
    disk: [{ ...metrics.disk[0], ...more }],
  }
  t.is((await say('/api/agent/metrics', padded)).status, 200)
  const agent = await ScriptedAgent.link(
    server,
    { hostId, agentId, token: own },
    { capabilities: { runAs: odd } },
  )
  t.teardown(() => agent.cut())
  await until('it said HELLO', async () => (await server.data('GET', `/api/hosts/${hostId}`)).agent.connected)
  const shown = JSON.stringify(await server.data('GET', `/api/hosts/${hostId}`))
  t.regex(shown, /a\ufffd-\ufffd/)
  for (const sign of unseen) t.false(shown.includes(JSON.stringify(sign).slice(1, -1)), JSON.stringify(sign))
})

test('A11 a metrics report over 32 KiB is accepted without its last disks, so that host lists stay small', async (t) => {
  const server = await startTestServer(t)
  const { agentId, token, hostId } = await server.enroll('web1')
  const disks = (count: number, length: number) =>
    Array.from({ length: count }, (_, n) => ({
      mountPoint: `/${n}/`.padEnd(length, 'x'),
      totalGB: 1,
      usedGB: 0.5,
      usagePercent: 50,
    }))
  for (const [count, length] of [
    [256, 4096],
    [400, 40],
    [3000, 20],
  ] as const) {
    const disk = disks(count, length)
    const answer = await server.api(
      'POST',
      '/api/agent/metrics',
      {
        agentId,
        timestamp: new Date().toISOString(),
        cpu: { usagePercent: 1, loadAvg1m: 0, loadAvg5m: 0, loadAvg15m: 0 },
        memory: { totalMB: 1, usedMB: 1, availableMB: 1, usagePercent: 5 },
        disk,
        network: { rxBytesPerSec: 0, txBytesPerSec: 0, connections: 0 },
      },
      { authorization: `Bearer ${token}` },
    )
    t.is(answer.status, 200, JSON.stringify(answer.body.errors?.slice(0, 3)))
    const { metrics } = await server.data('GET', `/api/hosts/${hostId}`)
    const bytes = Buffer.byteLength(JSON.stringify(metrics))
    t.true(bytes <= 32 * 1024 && bytes > 28 * 1024, `${bytes} bytes`)
    t.deepEqual(metrics.disk, disk.slice(0, metrics.disk.length))
  }
})
