import { setTimeout as delay } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import type { Host } from '../../../src/core/protocol/http/hosts.ts'
import type { Ran } from '../../fixtures/rsm.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { agentProcess, kill } from '../../helpers/agents/agent-process.ts'
import { commandLine } from '../../helpers/clients/command-line.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'

/** Seconds; a host is OFFLINE after three. */
const heartbeatInterval = 1

interface Examined {
  host: string
  status: string
  findings: { code: string; severity: string; message: string; advice: string }[]
  well: string[]
}

/** A real, linked agent in its own process. */
async function agentOf(t: ExecutionContext, server: TestServer, hostname: string) {
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', {})
  const dataDir = await temporaryDirectory(t)
  const child = await agentProcess(t, server, dataDir, { hostname, enrollToken })
  await hostWhen(server, hostname, ({ agent }) => agent?.connected === true)
  return { child, dataDir }
}

/** An agent that only sends heartbeats, with these fields. */
async function heartbeats(t: ExecutionContext, server: TestServer, hostname: string, says: () => object) {
  const { agentId, token } = await server.enroll(hostname)
  const authorization = `Bearer ${token}`
  const beat = () =>
    server.api('POST', '/api/agent/heartbeat', { agentId, status: 'HEALTHY', ...says() }, { authorization })
  await beat()
  let beating: Promise<unknown> = Promise.resolve()
  const timer = setInterval(() => {
    beating = beating.then(beat)
  }, 300)
  t.teardown(() => {
    clearInterval(timer)
    return beating
  })
}

async function hostWhen(server: TestServer, hostname: string, holds: (host: Host) => boolean): Promise<Host> {
  for (let look = 0; look < 600; look++) {
    const { content } = (await server.data('GET', '/api/hosts?size=500')) as { content: Host[] }
    const host = content.find((each) => each.hostname === hostname)
    if (host && holds(host)) return host
    await delay(100)
  }
  throw new Error(`gave up waiting for ${hostname}`)
}

/** Repeats a command up to 30 times: on a loaded machine a late heartbeat may add a finding. */
async function ranUntil(run: () => Promise<Ran>, holds: (ran: Ran) => boolean): Promise<Ran> {
  let ran = await run()
  for (let look = 0; look < 30 && !holds(ran); look++) ran = await run()
  return ran
}

test('exec, hosts doctor and agent status report what happened to a host, each with advice', async (t) => {
  const server = await startTestServer(t, { heartbeatInterval })
  const rsm = commandLine(t, server)
  await server.data('POST', '/api/hosts', { hostname: 'never1', ip: '192.0.2.1' })
  const names = ['good1', 'killed1', 'killed2', 'stopped1']
  const [, killed1, killed2, stopped1] = await Promise.all(names.map((name) => agentOf(t, server, name)))
  if (!killed1 || !killed2 || !stopped1) throw new Error('agents are missing')
  await Promise.all([kill(killed1.child, 'SIGKILL'), kill(killed2.child, 'SIGKILL')])
  stopped1.child.kill('SIGSTOP')
  const revoked = await server.enroll('revoked1')
  await server.data('DELETE', `/api/hosts/${revoked.hostId}/agent`)
  const linkFault = 'the server answered 403'
  await heartbeats(t, server, 'cut1', () => ({ onDemand: false, linkFault, uptime: 99 }))
  const ahead = () => new Date(Date.now() + 180_000).toISOString()
  await heartbeats(t, server, 'ahead1', () => ({ onDemand: true, timestamp: ahead() }))
  for (const name of ['killed1', 'killed2', 'stopped1'])
    await hostWhen(server, name, ({ status }) => status === 'OFFLINE')

  const ran = await rsm(['exec', '-w', 'killed1,cut1', '--queue', '1', '--', 'true'])
  t.is(ran.exit, 1, ran.stderr)
  t.regex(ran.stderr, /killed1: UNREACHABLE: killed1 is OFFLINE: no heartbeat for \d+ s\n/)
  t.regex(ran.stderr, /cut1: UNREACHABLE: cut1 is not linked \(the server answered 403\), and /)
  t.regex(ran.stderr, /\n +rsm hosts doctor cut1,killed1\n/)
  const waits = { script: { content: 'true' }, target: { selector: 'killed[1-2]' }, queueSeconds: 600 }
  await server.data('POST', '/api/tasks', waits)
  const shown = await rsm(['hosts', 'doctor', 'killed1'])
  t.is(shown.exit, 1, shown.stderr)
  t.regex(
    shown.stdout,
    /^killed1 is OFFLINE: .*\nerror +no heartbeat for \d+ s: .*\n +is killed1 up\? then on killed1: rsm agent status\n/,
  )
  t.regex(shown.stdout, /\nnote +1 task waits to run there\n +rsm tasks list --status RUNNING -w killed1\n/)
  const gone = await rsm(['agent', 'status', '--data-dir', killed1.dataDir])
  t.is(gone.exit, 5)
  t.regex(gone.stderr, /is gone: pid \d+ ended without a shutdown\n {5}\S/)
  const stopped = await rsm(['agent', 'status', '--data-dir', stopped1.dataDir])
  t.is(stopped.exit, 1, stopped.stdout)
  t.regex(
    stopped.stdout,
    new RegExp(`error +its process is suspended.*\n +kill -CONT ${stopped1.child.pid}\n`),
  )

  const good = await ranUntil(
    () => rsm(['hosts', 'doctor', 'good1']),
    ({ exit }) => exit === 0,
  )
  t.is(good.exit, 0, good.stdout)
  t.regex(good.stdout, /^good1 is ONLINE\n(.*\n)*ok +heard \d+ s ago; .*linked; /)

  const all = await ranUntil(
    () => rsm(['hosts', 'doctor']),
    ({ stdout }) => stdout.includes('7 of 8'),
  )
  t.is(all.exit, 1)
  t.regex(
    all.stdout,
    /^error +killed\[1-2\]: no heartbeat.*\n +is HOST up\? then on HOST: rsm agent status\n/,
  )
  t.regex(all.stdout, /\nproblems found on 7 of 8 hosts\n$/)
  const data = await ranUntil(
    () => rsm(['hosts', 'doctor', '--json']),
    ({ stdout }) => !/"late"/.test(stdout) && (stdout.match(/"silent"/g) ?? []).length === 3,
  )
  const { server: way, hosts } = JSON.parse(data.stdout) as {
    server: { url: string; version: string; findings: unknown[]; well: string[] }
    hosts: Examined[]
  }
  t.deepEqual(way.findings, [])
  t.true(way.well.includes('accepts work'))
  const codes = hosts.map(({ host, findings }) => {
    const wrong = findings.filter(({ severity }) => severity !== 'note')
    return `${host}: ${wrong.map(({ code }) => code).join() || 'well'}`
  })
  t.deepEqual(codes.sort(), [
    'ahead1: clock',
    'cut1: link-down',
    'good1: well',
    'killed1: silent',
    'killed2: silent',
    'never1: never-joined',
    'revoked1: revoked',
    'stopped1: silent',
  ])
  const cut = hosts.find(({ host }) => host === 'cut1')
  t.regex(cut?.findings[0]?.message ?? '', /the server answered 403$/)
  t.regex(cut?.findings[0]?.advice ?? '', /^a proxy in between .*\/ws\/$/)

  const missing = await rsm(['hosts', 'doctor', 'good2'])
  t.is(missing.exit, 5)
  t.regex(missing.stderr, /no such host: good2 \(did you mean good1\?\)/)
})
