import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import test from 'ava'
import { isOwnOrigin } from '../../../src/server/listeners/terminal-listener.ts'
import { createShortLived } from '../../../src/server/storage/files/short-lived.ts'
import { createTickets } from '../../../src/server/terminals/terminals.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { ShiftedClock } from '../../helpers/faults/shifted-clock.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { ScriptedTerminal } from '../../helpers/terminals/terminal-client.ts'
import { openTerminal, withTerminals } from '../../helpers/terminals/terminals.ts'
import { until } from '../../helpers/until.ts'

/** The refusal of an upgrade at exactly this path, which a URL would normalize. */
async function answerTo({ url, token }: { url: string; token: string }, path: string): Promise<unknown> {
  const { hostname, port } = new URL(url)
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-key': randomBytes(16).toString('base64'),
    'sec-websocket-version': '13',
    authorization: `Bearer ${token}`,
  }
  const asking = request({ hostname, port, path, headers }).end()
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  return json(response)
}

test('S08 a ticket opens only its own session, once; refusals are audited, and tickets are never logged', async (t) => {
  const server = await startServerProcess(t, { logLevel: 'DEBUG' })
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, withTerminals)
  const { hostId } = identity
  const { sessionId, created } = await openTerminal(server, agent, hostId)
  const { sessionId: other } = await openTerminal(server, agent, hostId)
  const refused = async (
    status: number,
    id: string,
    options: Parameters<typeof ScriptedTerminal.attach>[2],
  ) => {
    await t.throwsAsync(ScriptedTerminal.attach(server, id, options), {
      message: new RegExp(`^refused with ${status}:`),
    })
  }
  const fresh = async (body: object = {}): Promise<string> =>
    (await server.data('POST', `/api/terminals/${sessionId}/ticket`, body)).ticket
  const by = (ticket: string) => ({ token: null, query: `ticket=${ticket}` })

  const origin = server.url
  const client = await ScriptedTerminal.attach(server, sessionId, { ...by(created.ticket), origin })
  await client.next('TERMINAL_ATTACHED')
  await refused(401, sessionId, { ...by(created.ticket), origin })
  const elsewhere = await fresh()
  await refused(401, other, by(elsewhere))
  await refused(401, sessionId, by(elsewhere))
  await refused(401, sessionId, by('rsm_tkt_junk'))
  await refused(401, sessionId, { token: null })
  // An attempt from a page of another origin uses the ticket up.
  const stolen = await fresh()
  for (const foreign of ['https://evil.example', 'null', `${server.url}.evil.example`, 'http://127.0.0.1:1'])
    await refused(403, sessionId, { origin: foreign })
  await refused(403, sessionId, { ...by(stolen), origin: 'https://evil.example' })
  await refused(401, sessionId, { ...by(stolen), origin })
  const watcher = await ScriptedTerminal.attach(server, sessionId, by(await fresh({ watch: true })))
  t.true((await watcher.next('TERMINAL_ATTACHED')).watching)

  const login = async (username: string, role: string): Promise<string> => {
    await server.data('POST', '/api/users', { username, password: 'long enough', role })
    return (await server.data('POST', '/api/auth/login', { username, password: 'long enough' })).token
  }
  await refused(403, sessionId, { token: await login('vic', 'VIEWER') })
  await refused(404, sessionId, { token: await login('olga', 'OPERATOR') })
  await refused(403, sessionId, { token: identity.token })
  await refused(404, 'nosuch', {})
  const strange = {
    '%2e%2e': '%2e%2e',
    [`x/../${other}`]: `x/../${other}`,
    ['x'.repeat(5000)]: `${'x'.repeat(64)}…`,
  }
  for (const [asked, shown] of Object.entries(strange))
    t.deepEqual(await answerTo(server, `/ws/terminal/${asked}?after=1`), {
      code: 404,
      message: `no such terminal session: ${shown}`,
    })
  const { token } = await server.data('POST', '/api/tokens', { name: 'x' })
  const asked = await server.api(
    'POST',
    `/api/terminals/${sessionId}/ticket`,
    {},
    { authorization: `Bearer ${token}` },
  )
  const [{ id }] = (await server.data('GET', '/api/tokens')).content
  await server.data('DELETE', `/api/tokens/${id}`)
  await refused(401, sessionId, by(asked.body.data.ticket))
  await server.data('DELETE', `/api/terminals/${sessionId}`)
  await refused(410, sessionId, {})

  const upgrades = async () =>
    (await server.data('GET', '/api/audit?action=access.refuse&size=100')).content.filter(
      ({ detail }: { detail: { method: string } }) => detail.method === 'UPGRADE',
    )
  await until('all entries', async () => (await upgrades()).length === 14)
  t.true(
    (await upgrades()).every(({ detail }: { detail: { route: string } }) => detail.route === '/ws/terminal'),
  )
  const log = await readFile(join(server.dataDir, 'audit', 'audit.log'), 'utf8')
  t.notRegex(log, /rsm_tkt_/)
  t.true(server.logged().includes('server started'))
  t.false(server.logged().includes('rsm_tkt_'))
})

test('S08 a ticket is valid for 30 s by a monotonic clock', async (t) => {
  const clock = new ShiftedClock()
  const tickets = createTickets(createShortLived(clock), clock)
  const caller = {
    type: 'user',
    id: 1,
    username: 'a',
    role: 'ADMIN',
    tokenId: 1,
    ownerRole: 'ADMIN',
    rights: [],
    mayOutlast: true,
    tokenKind: 'session',
  } as const
  const admission = { sessionId: 's1', watch: false, caller: { ...caller, expiresAt: 0, idleAt: 0 } }
  const early = (await tickets.issue(admission)).ticket
  const late = (await tickets.issue(admission)).ticket
  clock.forward(29)
  t.is((await tickets.redeem(early))?.sessionId, 's1')
  clock.forward(2)
  t.is(await tickets.redeem(late), undefined)
})

test('S08 a page is of the same origin if host and port match, even behind a proxy', (t) => {
  const cases: [origin: string | undefined, host: string, forwarded: string | undefined, isOwn: boolean][] = [
    [undefined, 'rsm.example', undefined, true],
    ['https://rsm.example', 'rsm.example', undefined, true],
    ['https://rsm.example', 'rsm.example:443', undefined, true],
    ['http://rsm.example', 'rsm.example:443', undefined, false],
    ['https://rsm.example', '127.0.0.1:18080', 'rsm.example', true],
    ['https://rsm.example:8443', 'rsm.example', undefined, false],
    ['https://evil.example', 'rsm.example', undefined, false],
    ['https://rsm.example.evil.example', 'rsm.example', undefined, false],
    ['https://rsm.example@evil.example', 'rsm.example', undefined, false],
    ['https://user:word@rsm.example', 'rsm.example', undefined, false],
    ['https://rsm.example/page', 'rsm.example', undefined, false],
    ['https://rsm.example/', 'rsm.example', undefined, false],
    ['https://rsm.example?x', 'rsm.example', undefined, false],
    ['ftp://rsm.example', 'rsm.example', undefined, false],
    ['wss://rsm.example', 'rsm.example', undefined, false],
    ['chrome-extension://rsm.example', 'rsm.example', undefined, false],
    ['null', 'rsm.example', undefined, false],
    ['', 'rsm.example', undefined, false],
    ['http://[::1]:18080', '[::1]:18080', undefined, true],
  ]
  for (const [origin, host, forwarded, isOwn] of cases) {
    const headers = {
      host,
      ...(origin === undefined ? {} : { origin }),
      ...(forwarded === undefined ? {} : { 'x-forwarded-host': forwarded }),
    }
    t.is(isOwnOrigin({ headers }), isOwn, `${origin} at ${host}`)
  }
})
