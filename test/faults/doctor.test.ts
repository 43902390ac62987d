import { setTimeout as delay } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import type { Host } from '../../src/core/protocol/http/hosts.ts'
import { temporaryDirectory } from '../helpers/agent.ts'
import { agentProcess, kill } from '../helpers/agent-process.ts'
import { commandLine } from '../helpers/command-line.ts'
import { startTestServer, type TestServer } from '../helpers/server.ts'

/** Seconds; a host is OFFLINE after three. */
const heartbeatInterval = 2

/** A real agent in a process of its own, of a host of this name. */
async function agentOf(t: ExecutionContext, server: TestServer, hostname: string) {
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', {})
  return agentProcess(t, server, await temporaryDirectory(t), { hostname, enrollToken })
}

/** An agent that heartbeats only, and says this of itself. */
async function heartbeats(t: ExecutionContext, server: TestServer, hostname: string, says: () => object) {
  const { agentId, token } = await server.enrol(hostname)
  const authorization = `Bearer ${token}`
  const beat = () =>
    server.api('POST', '/api/agent/heartbeat', { agentId, status: 'HEALTHY', ...says() }, { authorization })
  await beat()
  const beating = setInterval(() => void beat(), 250)
  t.teardown(() => clearInterval(beating))
}

async function until(server: TestServer, hostname: string, holds: (host: Host) => boolean) {
  for (let look = 0; look < 600; look++) {
    const { content } = (await server.data('GET', '/api/hosts?size=500')) as { content: Host[] }
    const host = content.find((each) => each.hostname === hostname)
    if (host && holds(host)) return host
    await delay(100)
  }
  throw new Error(`waited in vain for ${hostname}`)
}

test('from exec to hosts doctor to what helps: never joined, killed, stopped, revoked, cut off, clock', async (t) => {
  const server = await startTestServer(t, { heartbeatInterval })
  const rsm = commandLine(t, server)
  await server.data('POST', '/api/hosts', { hostname: 'never1', ip: '192.0.2.1' })
  const agents = await Promise.all(
    ['good1', 'killed1', 'killed2', 'stopped1'].map((name) => agentOf(t, server, name)),
  )
  for (const name of ['good1', 'killed1', 'killed2', 'stopped1'])
    await until(server, name, ({ agent }) => agent?.connected === true)
  const [, killed1, killed2, stopped] = agents
  if (!killed1 || !killed2 || !stopped) throw new Error('agents are missing')
  await Promise.all([kill(killed1, 'SIGKILL'), kill(killed2, 'SIGKILL')])
  stopped.kill('SIGSTOP')
  const revoked = await server.enrol('revoked1')
  await server.data('DELETE', `/api/hosts/${revoked.hostId}/agent`)
  const ahead = () => new Date(Date.now() + 180_000).toISOString()
  await heartbeats(t, server, 'cut1', () => ({
    onDemand: false,
    linkFault: 'the server answered 403',
    uptime: 99,
  }))
  await heartbeats(t, server, 'ahead1', () => ({ timestamp: ahead(), onDemand: true }))
  await Promise.all(
    ['killed1', 'killed2', 'stopped1'].map((name) =>
      until(server, name, ({ status }) => status === 'OFFLINE'),
    ),
  )

  for (const name of ['never1', 'killed1', 'revoked1']) {
    const ran = await rsm(['exec', '-w', name, '--', 'true'])
    t.is(ran.exit, 255, ran.stderr)
    t.regex(ran.stderr, new RegExp(`${name} is OFFLINE: [^\n]*\n +rsm hosts doctor ${name}\n`))
  }
  const one = async (name: string) => {
    const ran = await rsm(['hosts', 'doctor', name])
    t.log(ran.stdout)
    return ran
  }
  for (const name of ['never1', 'killed1', 'stopped1', 'revoked1', 'cut1', 'ahead1', 'good1']) await one(name)
  const all = await rsm(['hosts', 'doctor'])
  t.log(all.stdout, all.stderr)
  t.log((await rsm(['hosts', 'doctor', '--json'])).stdout.length)
  t.pass()
})
