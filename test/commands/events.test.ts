import test, { type ExecutionContext } from 'ava'
import { eventStream, hostNamed, resultOf, startFakeServer, taskOf } from '../fixtures/fake-server.ts'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../fixtures/rsm.ts'

const at = '2026-11-21T03:25:15.000Z'
const { results: _, ...task } = taskOf([resultOf('web1'), resultOf('web2', { status: 'FAILED' })])
const cluster = { id: 3, name: 'web', hostCount: 1 }
const told: [string, object][] = [
  ['ready', { id: 'e-0' }],
  [
    'host',
    {
      change: 'updated',
      at,
      host: hostNamed(1, 'web1', { status: 'OFFLINE', statusReason: 'disk \u001b[2J/var 93 %' }),
    },
  ],
  ['host', { change: 'removed', at, host: { id: 7 } }],
  ['cluster', { change: 'created', at, cluster }],
  ['task', { change: 'updated', at, task }],
  ['reset', { reason: 'RESTARTED', id: 'e-5' }],
]

async function startEvents(t: ExecutionContext, ...argv: string[]) {
  const server = await startFakeServer(t, {
    'GET /api/events': (_seen, response) => {
      const write = eventStream(response)
      for (const [n, [event, data]] of told.entries()) write(event, data, `e-${n}`)
    },
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' })
  const rsm = startRsm(['events', '--utc', ...argv], env)
  t.teardown(() => rsm.child.kill('SIGKILL'))
  return { ...rsm, server }
}

test('events prints each change on a line without control sequences, and Ctrl-C ends it quietly', async (t) => {
  const { child, done, shows } = await startEvents(t)
  await shows('was restarted')
  child.kill('SIGINT')
  const ran = await done
  t.is(ran.signal, 'SIGINT')
  t.is(
    ran.stdout,
    [
      '2026-11-21 03:25:15Z host web1 OFFLINE: disk /var 93 %',
      '2026-11-21 03:25:15Z host 7 removed',
      '2026-11-21 03:25:15Z cluster web created, 1 host',
      '2026-11-21 03:25:15Z task task-1 FAILED in 1.2 s: 1 SUCCESS, 1 FAILED',
      '',
    ].join('\n'),
  )
  t.is(ran.stderr, 'rsm: events may be missing: the server was restarted\n')
})

test('events --json prints one event per line, with its id; --type and --after go to the server', async (t) => {
  const { child, done, shows, server } = await startEvents(
    t,
    '--json',
    '--type',
    'host,task',
    '--after',
    'e-9',
  )
  await shows('"reset"')
  child.kill('SIGTERM')
  const lines = (await done).stdout.trimEnd().split('\n')
  t.deepEqual(
    lines.map((line) => JSON.parse(line)),
    told.map(([type, data], n) => ({ type, id: `e-${n}`, ...data })),
  )
  t.deepEqual(server.seen[0]?.query.getAll('type'), ['host', 'task'])
  t.is(server.seen[0]?.query.get('after'), 'e-9')
})

test('an unknown event type is a usage error', async (t) => {
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: 'http://127.0.0.1:1', RSM_TOKEN: 'x' })
  t.is((await runRsm(['events', '--type', 'hosts'], env)).exit, 2)
})
