import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { Server } from '../../../src/core/protocol/http/server.ts'
import { cleanEnv, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { startBalancer } from '../../helpers/cluster/balancer.ts'
import { clusterTest } from '../../helpers/cluster/cluster.ts'
import { sharedPostgres } from '../../helpers/servers/postgres.ts'
import { restCaller, type TestServer } from '../../helpers/servers/server.ts'
import { skipped } from '../../helpers/skipped.ts'
import { plainShell } from '../../helpers/terminals/plain-shell.ts'
import { bashOnPty, rsm } from '../../helpers/terminals/pty.ts'
import { recordingOf } from '../../helpers/terminals/terminals.ts'
import { missing } from '../../helpers/terminals/tmux.ts'
import { until } from '../../helpers/until.ts'

const test = missing('vim').length > 0 ? skipped('vim is missing: apt install vim') : clusterTest
const password = 'a password for tests'

function callerOf(url: string): TestServer {
  const server: TestServer = {
    url,
    dataDir: '',
    token: '',
    ...restCaller(() => server),
    restart: () => Promise.reject(new Error('the test controls the process')),
    stop: () => Promise.reject(new Error('the test controls the process')),
  }
  return server
}

/** A shared store, a server for the user and one for the agent; each moves to the other server if its own is down. */
async function apart(t: ExecutionContext) {
  const postgres = await sharedPostgres()
  const store = await postgres.database({ migrated: false })
  const home = temporaryDirectory(t)
  const start = async (name: string) => {
    const options = {
      store,
      keys: join(home, 'keys'),
      'server-name': name,
      'trusted-proxy': '127.0.0.1',
      'data-dir': join(home, name),
      port: '0',
    }
    const words = Object.entries(options).flatMap(([option, value]) => [`--${option}`, value])
    const { child, out, shows } = startRsm(
      ['server', 'start', ...words],
      cleanEnv(home, { RSM_ADMIN_PASSWORD: password }),
    )
    t.teardown(() => child.kill('SIGKILL'))
    await shows('listening on')
    return Object.assign(callerOf(/listening on (\S+)/.exec(out.stdout)?.[1] ?? ''), { name, child })
  }
  const servers = [await start('a'), await start('b')]
  const ports = servers.map(({ url }) => Number(new URL(url).port))
  const forUser = callerOf(await startBalancer(t, ports, 'first'))
  const forAgent = callerOf(await startBalancer(t, ports.toReversed(), 'first'))
  const { token } = await forUser.data('POST', '/api/auth/login', { username: 'admin', password })
  for (const one of [...servers, forUser, forAgent]) one.token = token
  await realAgent(t, forAgent, { hostname: 'web1' })
  const linkedAt = async (at: TestServer) => {
    const { content } = (await at.data('GET', '/api/servers')) as { content: Server[] }
    return content.find(({ links }) => links > 0)?.name
  }
  const [near, far] = servers
  if (!near || !far) throw new Error('no second server')
  await until('the agent is linked', async () => (await linkedAt(near)) === far.name)
  return { home, near, far, forUser, linkedAt }
}

for (const [told, isOfAgent] of [
  ['its agent', true],
  ['its user', false],
] as const)
  test(`vim across two servers continues when the server of ${told} is killed, and its recording is complete`, async (t) => {
    const { home, near, far, forUser, linkedAt } = await apart(t)
    const [killed, left] = isOfAgent ? [far, near] : [near, far]
    const vim = "vim -u NONE -i NONE -N --cmd 'set ttimeoutlen=50' text.txt"
    const pty = bashOnPty(
      t,
      `${rsm} terminal web1 --shell ${plainShell(t)} -- "cd ${home}; exec ${vim}"`,
      temporaryDirectory(t),
      { RSM_URL: forUser.url, RSM_TOKEN: forUser.token },
    )
    await pty.shows(/"text\.txt"/)
    pty.type('ibefore\u001b:w\r')
    await pty.shows(/1L, 7B written/)
    killed.child.kill('SIGKILL')
    const killedAt = performance.now()
    await pty.shows(/reattached/)
    t.log(`reattached ${Math.round(performance.now() - killedAt)} ms after the kill`)
    await until('the agent is linked to the other server', async () => (await linkedAt(left)) === left.name)
    pty.type('oafter\u001b:wq\r')
    t.is(await pty.ended, 0)
    t.is(readFileSync(join(home, 'text.txt'), 'utf8'), 'before\nafter\n')
    const { content } = await left.data('GET', '/api/terminals')
    const { output, events } = await recordingOf(left, content[0].sessionId)
    t.regex(output, /1L, 7B written/)
    // vim omits its message if the new server's notice restores its line at that moment.
    t.regex(output, /after.*:wq.*\[\?1049l/s)
    const missed = events.filter(([code]) => code === 'm')
    t.deepEqual(missed, [], 'no output is missing')
  })
