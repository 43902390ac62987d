import test from 'ava'
import { eventStream, hostNamed, pageOf, startFakeServer } from '../fixtures/fake-server.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { commandLine } from '../helpers/clients/command-line.ts'
import { startTestServer } from '../helpers/servers/server.ts'

const away = { status: 'OFFLINE', statusReason: 'never heard' } as const
const ready = (id: string) => ['ready', { id }, id] as const

test('hosts wait follows events, also after a cut, without polling, until all hosts are ONLINE or WARNING', async (t) => {
  const streams: string[] = []
  const server = await startFakeServer(t, {
    'POST /api/hosts/select': () =>
      pageOf([hostNamed(1, 'web1', away), hostNamed(2, 'web2', away), hostNamed(3, 'web3')]),
    'GET /api/events': (seen, response) => {
      streams.push(String(seen.headers['last-event-id']))
      const write = eventStream(response)
      const told = (id: number, status: 'ONLINE' | 'WARNING', event: string) =>
        write('host', { change: 'updated', at: '', host: hostNamed(id, `web${id}`, { status }) }, event)
      if (streams.length === 1) {
        write(...ready('a-1'))
        told(2, 'WARNING', 'a-2')
        told(9, 'ONLINE', 'a-3')
        response.end()
      } else told(1, 'ONLINE', 'a-4')
    },
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'secret' })
  const ran = await runRsm(['hosts', 'wait', 'web1', 'web[2-3]'], env)
  t.is(ran.exit, 0, ran.stderr)
  t.is(ran.stdout, 'web[1-3]: reachable\n')
  t.deepEqual(streams, ['undefined', 'a-3'])
  const asked = server.seen.filter(({ path }) => path === '/api/hosts/select').map(({ body }) => body)
  const target = { selector: 'web1,web[2-3]' }
  t.deepEqual(asked, [{ target }, { target }])
})

test('hosts wait times out with 124 and names unreachable hosts with the reason; --new waits for hosts to be created', async (t) => {
  const server = await startTestServer(t)
  const rsm = commandLine(t, server)
  await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
  await server.enroll('web2')
  const late = await rsm(['hosts', 'wait', 'web1,web2', '--timeout', '0.1'])
  t.is(late.exit, 124)
  t.is(
    late.stderr,
    'rsm: not reachable after 100 ms: web1 (OFFLINE: never heard)\n     rsm hosts doctor web1\n',
  )
  const unknown = await rsm(['hosts', 'wait', 'web3'])
  t.is(unknown.exit, 5, unknown.stderr)
  const [waited] = await Promise.all([
    rsm(['hosts', 'wait', '--new', 'web[2-3]', '--json']),
    server.enroll('web3'),
  ])
  t.is(waited.exit, 0, waited.stderr)
  const { hosts } = JSON.parse(waited.stdout) as { hosts: { hostname: string }[] }
  t.deepEqual(hosts.map(({ hostname }) => hostname).sort(), ['web2', 'web3'])
})
