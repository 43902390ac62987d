import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { adminLogin, startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { onSteadyPort } from '../../helpers/servers/steady-port.ts'
import { ask, login, portOf, upgrade } from '../../helpers/servers/wire-request.ts'
import { until } from '../../helpers/until.ts'

const hasHaproxy = spawnSync('haproxy', ['-v']).error === undefined
/** Address of the clients; the proxy itself connects from 127.0.0.1. */
const client = '127.0.0.3'

/** Health checks reach the server as well, with a preamble of type LOCAL. */
const config = (server: number, byPreamble: number, byHeader: number) => `
defaults
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout tunnel 1h
  timeout http-keep-alive 200ms
  option httpchk GET /api/health

listen preamble
  mode tcp
  bind 127.0.0.1:${byPreamble}
  server rsm 127.0.0.1:${server} send-proxy-v2 check inter 200ms

listen header
  mode http
  bind 127.0.0.1:${byHeader}
  option forwardfor
  http-request set-header X-Forwarded-Proto https
  server rsm 127.0.0.1:${server} check inter 200ms
`

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return isOpen
}

/** HAProxy in front of a server, on two ports: one passes the client in a preamble, one in a header. */
async function startHaproxy(t: ExecutionContext, server: Pick<TestServer, 'url'>) {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-haproxy-'))
  t.teardown(() => rm(directory, { recursive: true }))
  const file = join(directory, 'haproxy.cfg')
  const start = async (byPreamble: number, byHeader: number) => {
    await writeFile(file, config(portOf(server), byPreamble, byHeader))
    const child = spawn('haproxy', ['-db', '-q', '-f', file], { stdio: ['ignore', 'ignore', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    await until('HAProxy listens', async () => {
      if (child.exitCode !== null) throw new Error(`HAProxy ended with ${child.exitCode}`)
      return (await answers(byPreamble)) && (await answers(byHeader))
    })
    return [byPreamble, byHeader].map((port) => ({ url: `http://127.0.0.1:${port}` }))
  }
  return onSteadyPort((one) => onSteadyPort((other) => start(one, other)))
}

const withHaproxy = hasHaproxy ? test : test.skip
// Skipped without Debian's haproxy (.ci/run installs it).
withHaproxy(
  'HAProxy passes the client address of logins, agents and refusals, in a preamble or a header',
  async (t) => {
    const server = await startTestServer(t, { trustedProxies: ['127.0.0.1'] })
    const last = async (action: string) =>
      (await server.data('GET', `/api/audit?action=${action}`)).content[0].ip
    const identity = await server.enroll('web1')
    for (const door of await startHaproxy(t, server)) {
      t.is((await ask(door, login(adminLogin.password), { from: client })).status, 200)
      t.is(await last('user.login'), client)
      const spoofed = login(adminLogin.password, ['x-forwarded-for: 203.0.113.9'])
      t.is((await ask(door, spoofed, { from: client })).status, 200)
      t.is(await last('user.login'), client)
      const refused = await ask(door, upgrade('/ws/agent/a1', ['authorization: Bearer junk']), {
        from: client,
      })
      t.is(refused.status, 401)
      t.is(await last('access.refuse'), client)
      const agent = await ScriptedAgent.link(door, identity)
      await agent.settled()
      await agent.cut()
    }
  },
)

withHaproxy('HAProxy accepts the configuration of examples/cluster without warnings', (t) => {
  const { status, stdout, stderr } = spawnSync('haproxy', ['-c', '-f', 'examples/cluster/haproxy.cfg'], {
    encoding: 'utf8',
  })
  t.is(status, 0, stderr)
  t.is(`${stdout}${stderr}`, 'Configuration file is valid\n')
})
