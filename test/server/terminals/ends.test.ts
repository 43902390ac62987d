import test, { type ExecutionContext } from 'ava'
import type { AgentLink } from '../../../src/server/storage/ports/cluster.ts'
import type { Terminals } from '../../../src/server/terminals/terminals.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { ShiftedClock } from '../../helpers/faults/shifted-clock.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { host, terminal } from '../../helpers/servers/store-records.ts'
import { ScriptedTerminal } from '../../helpers/terminals/terminal-client.ts'
import { openTerminal, withTerminals } from '../../helpers/terminals/terminals.ts'
import { until } from '../../helpers/until.ts'

const clock = new ShiftedClock()
let server: TestServer
let stop: () => unknown
let hosts = 0
test.before(async (t) => {
  // A teardown registered in this hook would run at the end of the hook.
  const teardown = (end: () => unknown) => {
    stop = end
  }
  server = await startTestServer({ ...t, teardown }, { clock })
})
test.after.always(() => stop())

/** Connects a new host with its agent to the server that all cases share. */
async function start() {
  const identity = await server.enroll(`end${++hosts}`)
  const agent = await ScriptedAgent.link(server, identity, withTerminals)
  return { identity, agent, hostId: identity.hostId }
}

test.serial(
  'P40 a reason of any length or script closes the client socket and arrives complete',
  async (t) => {
    const { agent, hostId } = await start()
    for (const reason of ['é'.repeat(99), 'a'.repeat(2000), `ab${'🙂'.repeat(60)}`, '漢'.repeat(42)]) {
      const { sessionId } = await openTerminal(server, agent, hostId)
      const client = await ScriptedTerminal.attach(server, sessionId)
      await client.next('TERMINAL_ATTACHED')
      agent.send('TERMINAL_CLOSED', { sessionId, exitCode: null, signal: null, reason })
      t.is((await client.next('TERMINAL_CLOSED')).reason, reason)
      const { code, reason: said } = await client.closed
      t.is(code, 1000)
      t.true(said !== '' && reason.startsWith(said))
    }
  },
)

test.serial('P39 a session that is ended while its host opens it leaves no shell on the host', async (t) => {
  const { agent, hostId } = await start()
  const asked = server.api('POST', '/api/terminals', { hostId, cols: 80, rows: 24 })
  const { sessionId } = await agent.next('TERMINAL_OPEN')
  await server.api('DELETE', `/api/terminals/${sessionId}`)
  t.is((await asked).status, 409)
  t.is((await agent.next('TERMINAL_CLOSE')).sessionId, sessionId)
  const refId = agent.send('TERMINAL_OPENED', { sessionId })
  t.is((await agent.next('ERROR', (error) => error.refId === refId)).code, 404)
  t.is((await agent.next('TERMINAL_CLOSE')).sessionId, sessionId)
})

test.serial(
  'P42 F20 a client cut off unnoticed when the shell ends gets the rest and the exit code on return',
  async (t) => {
    const { agent, hostId } = await start()
    const { sessionId } = await openTerminal(server, agent, hostId)
    const session = (path = '') => `/api/terminals/${sessionId}${path}`
    const dead = await ScriptedTerminal.attach(server, sessionId)
    agent.send('TERMINAL_OUTPUT', { sessionId, data: 'before ', sequence: 0 })
    await agent.next('TERMINAL_ACK', ({ sequence }) => sequence === 0)
    dead.socket.pause()
    agent.send('TERMINAL_OUTPUT', { sessionId, data: 'tail', sequence: 1 })
    agent.send('TERMINAL_CLOSED', { sessionId, exitCode: 5, signal: null, reason: null })
    await agent.next('TERMINAL_CLOSE')
    t.is((await server.data('GET', session())).status, 'CLOSED')
    await dead.cut()
    const { ticket } = await server.data('POST', session('/ticket'))
    const back = await ScriptedTerminal.attach(server, sessionId, {
      token: null,
      query: `ticket=${ticket}&after=0`,
    })
    t.is((await back.next('TERMINAL_CLOSED')).exitCode, 5)
    t.is(back.text, 'tail')
    t.is((await back.closed).code, 1000)
    t.is((await server.api('POST', session('/ticket'))).status, 409)
  },
)

test.serial(
  'P42 F20 the exit code reaches a client that had all output; the server does not wait for one that closes',
  async (t) => {
    const { agent, hostId } = await start()
    const { sessionId } = await openTerminal(server, agent, hostId)
    const dead = await ScriptedTerminal.attach(server, sessionId)
    await dead.next('TERMINAL_ATTACHED')
    dead.socket.pause()
    agent.send('TERMINAL_CLOSED', { sessionId, exitCode: 6, signal: null, reason: null })
    await agent.next('TERMINAL_CLOSE')
    await dead.cut()
    const back = await ScriptedTerminal.attach(server, sessionId, { acknowledges: false })
    t.is((await back.next('TERMINAL_CLOSED')).exitCode, 6)
    back.socket.close()
    await back.closed
    const ticket = async () => (await server.api('POST', `/api/terminals/${sessionId}/ticket`)).status
    await until('the session is released', async () => (await ticket()) === 409)

    const { sessionId: left } = await openTerminal(server, agent, hostId)
    const never = await ScriptedTerminal.attach(server, left)
    await never.next('TERMINAL_ATTACHED')
    await never.cut()
    agent.send('TERMINAL_CLOSED', { sessionId: left, exitCode: 0, signal: null, reason: null })
    await agent.next('TERMINAL_CLOSE', (payload) => payload.sessionId === left)
    t.is((await server.api('POST', `/api/terminals/${left}/ticket`)).status, 201)
    clock.forward(61)
    await until('the server stops waiting', async () => {
      const { status } = await server.api('POST', `/api/terminals/${left}/ticket`)
      return status === 409
    })
  },
)

/** The terminals of a server without sockets: the test decides how the host's link answers each frame. */
async function inside(
  t: ExecutionContext,
  sent: (type: string, world: { terminals: Terminals; link: AgentLink; sessionId: string }) => boolean,
) {
  const insides = await startInsides(t)
  const { store, terminals } = insides.context
  await terminals.recover()
  t.teardown(() => terminals.stop())
  const at = new Date().toISOString()
  const agent = { agentId: 'a1', agentVersion: '1', registeredAt: at, tokenHash: 'x', tokenUsed: true }
  const expiresAt = new Date(Date.now() + 3600_000).toISOString()
  await store.transact(async (tx) => {
    tx.put('hosts', host(1, 'web1', { agent: { ...agent, enrollmentId: null } }))
    const token = await tx.get('tokens', 1)
    if (token) tx.put('tokens', { ...token, expiresAt })
  })
  const link: AgentLink = {
    isOpen: true,
    hostId: 1,
    agentId: 'a1',
    claim: { hostId: 1, agentId: 'a1', server: { name: 'server', epoch: 1 }, epoch: 1, since: at },
    hello: {
      agentVersion: '1',
      storeId: 's',
      capabilities: { maxExecutions: 1, scriptTypes: [], containment: 'process-group', terminal: true },
      tasks: [],
    },
    send: (type, payload) =>
      sent(type, { terminals, link, sessionId: 'sessionId' in payload ? payload.sessionId : '' }),
    stray: () => undefined,
    close: () => undefined,
  }
  terminals.linked(link)
  const record = terminal('s1', { startedAt: at })
  const open = () => terminals.open({ record, caller: insides.admin })
  return { store, terminals, link, open, refuse: (refuses: boolean) => insides.refuse(refuses) }
}

test('P39 a link that closes because it is full fails only the session being opened', async (t) => {
  const { store, terminals, open } = await inside(t, (_, { link }) => {
    terminals.unlinked(link)
    return false
  })
  await t.throwsAsync(open(), { code: 'conflict', message: /disconnected while opening/ })
  t.deepEqual((await store.query('terminals')).items, [])
})

test('P43 an agent within its window may send single characters', async (t) => {
  const opens: Promise<void>[] = []
  const { terminals, open, link } = await inside(t, (type, { sessionId }) => {
    if (type === 'TERMINAL_OPEN')
      opens.push(Promise.resolve().then(() => terminals.opened(link, 'f', { sessionId })))
    return true
  })
  await open()
  await Promise.all(opens)
  for (let sequence = 0; sequence < 60_000; sequence++)
    await terminals.output(link, 'f', { sessionId: 's1', data: 'x', sequence })
  t.is(terminals.load().open, 1)
})

test('P40 an end that the store rejects is an error, and is stored once the store recovers', async (t) => {
  const opens: Promise<void>[] = []
  const { terminals, store, open, link, refuse } = await inside(t, (type, { sessionId }) => {
    if (type === 'TERMINAL_OPEN')
      opens.push(Promise.resolve().then(() => terminals.opened(link, 'f', { sessionId })))
    return true
  })
  await open()
  refuse(true)
  await t.throwsAsync((await terminals.site('s1')).end('s1', 'ended by admin'), { code: 'unavailable' })
  t.is((await store.get('terminals', 's1'))?.status, 'OPEN')
  refuse(false)
  await until('the end is stored', async () => (await store.get('terminals', 's1'))?.status === 'CLOSED')
  await (await terminals.site('s1')).end('s1', 'again')
})

test('P42 the agent keeps an exit code until it is stored, even if its link is replaced first', async (t) => {
  const opens: Promise<void>[] = []
  let isRefused = false
  const confirmed: string[] = []
  const { terminals, store, open, link, refuse } = await inside(t, (type, { sessionId }) => {
    if (type === 'TERMINAL_OPEN')
      opens.push(Promise.resolve().then(() => terminals.opened(link, 'f', { sessionId })))
    if (type === 'TERMINAL_CLOSE') confirmed.push(isRefused ? 'unsaved' : 'saved')
    return true
  })
  await open()
  isRefused = true
  refuse(true)
  await terminals.closed(link, 'f', { sessionId: 's1', exitCode: 9, signal: null, reason: null })
  terminals.unlinked(link)
  const hello = link.hello && { ...link.hello, terminals: [{ sessionId: 's1', lastSequence: -1 }] }
  terminals.linked({ ...link, hello })
  await t.throwsAsync((await terminals.site('s1')).end('s1', 'ended by admin'), { code: 'unavailable' })
  isRefused = false
  refuse(false)
  await until('it is confirmed', () => confirmed.length > 0)
  t.false(confirmed.includes('unsaved'))
  t.like(await store.get('terminals', 's1'), { status: 'CLOSED', exitCode: 9 })
})

test.serial('P45 a watcher that reconnects gets only the output after its position', async (t) => {
  const { agent, hostId } = await start()
  const { sessionId } = await openTerminal(server, agent, hostId)
  await ScriptedTerminal.attach(server, sessionId)
  agent.send('TERMINAL_OUTPUT', { sessionId, data: 'seen ', sequence: 0 })
  agent.send('TERMINAL_OUTPUT', { sessionId, data: 'unseen', sequence: 1 })
  await agent.next('TERMINAL_ACK', ({ sequence }) => sequence === 1)
  const watcher = await ScriptedTerminal.attach(server, sessionId, { query: 'watch=true&after=0' })
  t.like(await watcher.next('TERMINAL_ATTACHED'), { after: 0, omitted: 0, watching: true })
  await watcher.shows('unseen')
  t.is(watcher.text, 'unseen')
})
