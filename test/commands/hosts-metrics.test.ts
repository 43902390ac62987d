import test, { type ExecutionContext } from 'ava'
import type { Host, HostMetrics } from '../../src/core/protocol/http/hosts.ts'
import { hostNamed, pageOf, startFakeServer } from '../fixtures/fake-server.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { metrics } from '../helpers/metrics/metrics.ts'

const history: HostMetrics = {
  hostId: 1,
  from: '2026-11-20T03:00:00.000Z',
  to: '2026-11-21T03:00:00.000Z',
  samples: [
    metrics('2026-11-20T04:00:00.000Z', { cpu: 20 }),
    metrics('2026-11-21T02:59:00.000Z', { cpu: 80 }),
  ],
}

async function run(t: ExecutionContext, options: string[], answer = history, host: Partial<Host> = {}) {
  const server = await startFakeServer(t, {
    'GET /api/hosts': () => pageOf([hostNamed(1, 'web1', host)]),
    'GET /api/hosts/1/metrics': () => answer,
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' })
  const ran = await runRsm(['hosts', 'metrics', 'web1', ...options], env)
  const asked = server.seen.find(({ path }) => path.endsWith('/metrics'))?.query
  return { ...ran, asked: Object.fromEntries(asked ?? []) }
}

test('hosts metrics prints a line for each metric, and the period', async (t) => {
  const { exit, stdout, stderr, asked } = await run(t, ['--utc'])
  t.is(exit, 0, stderr)
  t.regex(stdout, /^web1, 2026-11-20 03:00:00Z to 2026-11-21 03:00:00Z\nSERIES /)
  t.regex(stdout, /^cpu +20\.0 % +50\.0 % +80\.0 % +80\.0 % +▂ +▇$/m)
  t.regex(stdout, /^disk \/ +40\.0 %/m)
  t.deepEqual(asked, { points: '2000' })
})

test("hosts metrics --json prints only the data, with the server's default number of points", async (t) => {
  const { stdout, asked } = await run(t, ['--json'])
  t.deepEqual(JSON.parse(stdout), history)
  t.deepEqual(asked, {})
})

test('hosts metrics requests the given range and number of points', async (t) => {
  const range = ['--from', '2026-11-20 04:00', '--to', '2026-11-20T05:00:00Z', '--utc', '--points', '7']
  const { asked } = await run(t, range)
  t.deepEqual(asked, { from: '2026-11-20T04:00:00.000Z', to: '2026-11-20T05:00:00.000Z', points: '7' })
  const before = Date.now()
  const from = Date.parse((await run(t, ['--since', '2h'])).asked['from'] ?? '')
  t.true(from >= before - 7_200_000 && from <= Date.now() - 7_200_000)
})

for (const [what, host, said] of [
  ['no agent', {}, /no agent has joined it: rsm hosts join --replace web1/],
  ['an OFFLINE agent', { status: 'OFFLINE', agent: {} as Host['agent'] }, /rsm hosts doctor web1/],
  ['an agent that has not reported yet', { agent: {} as Host['agent'] }, /60 s by default/],
] as const)
  test(`hosts metrics of a host without history and ${what} says what to check`, async (t) => {
    const { exit, stdout, stderr } = await run(t, [], { ...history, samples: [] }, host)
    t.deepEqual([exit, stdout], [0, ''])
    t.regex(stderr, /^rsm: no metrics of web1 from /)
    t.regex(stderr, said)
  })

for (const [options, said] of [
  [['--since', 'yesterday'], /not a duration/],
  [['--from', 'noon'], /--from takes a time/],
  [['--since', '1h', '--from', '2026-11-20'], /--from/],
  [['--points', '0'], /--points takes a whole number from 1, not 0/],
] as const)
  test(`hosts metrics ${options.join(' ')} is a usage error`, async (t) => {
    const { exit, stderr, asked } = await run(t, [...options])
    t.is(exit, 2, stderr)
    t.regex(stderr, said)
    t.deepEqual(asked, {})
  })
