import test, { type ExecutionContext } from 'ava'
import type { FromServer } from '../../../src/core/protocol/messages.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { ScriptedTerminal } from '../../helpers/terminals/terminal-client.ts'
import { openTerminal, recordingOf, withTerminals } from '../../helpers/terminals/terminals.ts'
import { until } from '../../helpers/until.ts'

let server: TestServer
let stop: () => unknown
let hosts = 0
test.before(async (t) => {
  // A teardown registered in this hook would run at the end of the hook.
  const teardown = (end: () => unknown) => {
    stop = end
  }
  server = await startTestServer({ ...t, teardown })
})
test.after.always(() => stop())

/** The newest entry of this action about a session. The server writes entries asynchronously. */
async function audited(action: string, sessionId: string) {
  const path = `/api/audit?action=${action}&objectType=terminal&objectId=${sessionId}`
  const find = async () => (await server.data('GET', path)).content[0]
  await until(action, async () => (await find()) !== undefined)
  return find()
}

/** Connects a new host with its agent to the server that all cases share. */
async function start() {
  const identity = await server.enroll(`web${++hosts}`)
  const agent = await ScriptedAgent.link(server, identity, withTerminals)
  return { server, identity, agent, hostId: identity.hostId }
}

test.serial('P39 a session works from its opening to the end of its shell', async (t) => {
  const { server, agent, hostId } = await start()
  const opened = await openTerminal(server, agent, hostId, { term: 'xterm', command: 'true', shell: 'sh' })
  const { sessionId, frame, created } = opened
  t.like(frame, { sessionId, cols: 80, rows: 24, term: 'xterm', command: 'true', shell: 'sh' })
  t.false('after' in frame)
  t.is(created.path, `/ws/terminal/${sessionId}`)
  const client = await ScriptedTerminal.attach(server, sessionId)
  t.like(await client.next('TERMINAL_ATTACHED'), { after: -1, omitted: 0, recorded: true, watching: false })
  client.type('ls\r')
  t.is((await agent.next('TERMINAL_INPUT')).data, 'ls\r')
  client.send('TERMINAL_RESIZE', { cols: 100, rows: 30 })
  t.like(await agent.next('TERMINAL_RESIZE'), { cols: 100, rows: 30 })
  agent.send('TERMINAL_OUTPUT', { sessionId, data: 'a ü\r\n', sequence: 0 })
  agent.send('TERMINAL_OUTPUT', { sessionId, data: '$ ', sequence: 1 })
  await client.shows('a ü\r\n$ ')
  await agent.next('TERMINAL_ACK', ({ sequence }) => sequence === 1)
  t.like(await server.data('GET', `/api/terminals/${sessionId}`), { status: 'OPEN', cols: 100, rows: 30 })
  agent.send('TERMINAL_CLOSED', { sessionId, exitCode: 3, signal: null, reason: null })
  t.like(await client.next('TERMINAL_CLOSED'), { exitCode: 3, signal: null, reason: null })
  t.is((await client.closed).code, 1000)
  // The agent may forget the session: its end is on disk.
  await agent.next('TERMINAL_CLOSE')
  t.like(await server.data('GET', `/api/terminals/${sessionId}`), { status: 'CLOSED', exitCode: 3 })
  const { header, events } = await recordingOf(server, sessionId)
  t.like(header, { version: 2, width: 80, height: 24 })
  t.deepEqual(events, [
    ['r', '100x30'],
    ['o', 'a ü\r\n'],
    ['o', '$ '],
  ])
})

test.serial(
  'P39 a command that ends before its client connects shows all its output and its end',
  async (t) => {
    const { server, agent, hostId } = await start()
    const asked = server.data('POST', '/api/terminals', { hostId, cols: 80, rows: 24, command: 'id' })
    const { sessionId } = await agent.next('TERMINAL_OPEN')
    agent.send('TERMINAL_OPENED', { sessionId })
    agent.send('TERMINAL_OUTPUT', { sessionId, data: 'all', sequence: 0 })
    agent.send('TERMINAL_CLOSED', { sessionId, exitCode: 0, signal: null, reason: null })
    await asked
    await agent.next('TERMINAL_CLOSE')
    const client = await ScriptedTerminal.attach(server, sessionId)
    t.like(await client.next('TERMINAL_CLOSED'), { exitCode: 0 })
    t.is(client.text, 'all')
    t.is((await client.closed).code, 1000)
    await t.throwsAsync(ScriptedTerminal.attach(server, sessionId), { message: /410/ })
  },
)

test.serial('P39 a long command reaches its host whole, and is displayed shortened', async (t) => {
  const { server, agent, hostId } = await start()
  const command = `${'x'.repeat(1023)}🙂${'y'.repeat(100_000)}`
  const { sessionId, frame } = await openTerminal(server, agent, hostId, { command })
  t.is(frame.command, command)
  const shown = `${'x'.repeat(1023)}…`
  t.is((await server.data('GET', `/api/terminals/${sessionId}`)).command, shown)
  const { content } = await server.data('GET', `/api/terminals?hostId=${hostId}`)
  t.is(content[0].command, shown)
})

test.serial(
  'P39 a host that cannot or may not open a terminal gives the reason, and no session remains',
  async (t) => {
    const { server, agent, identity, hostId } = await start()
    const before = (await server.data('GET', '/api/terminals')).totalElements
    const ask = () => server.api('POST', '/api/terminals', { hostId, cols: 80, rows: 24 })
    const asked = ask()
    const { sessionId } = await agent.next('TERMINAL_OPEN')
    const reason = 'there is no shell /bin/nosuch on this host'
    agent.send('TERMINAL_CLOSED', { sessionId, exitCode: null, signal: null, reason })
    t.like(await asked, { status: 409, body: { message: reason } })
    const cut = ask()
    await agent.next('TERMINAL_OPEN')
    await agent.cut()
    t.regex((await cut).body.message, /disconnected while opening/)
    t.regex((await ask()).body.message, /is not connected/)
    const without = await ScriptedAgent.link(server, identity)
    await without.settled()
    t.like(await ask(), { status: 409, body: { code: 409 } })
    t.regex((await ask()).body.message, /no terminal facility/)
    await ScriptedAgent.link(server, identity, { storeId: null })
    t.regex((await ask()).body.message, /does not support terminals/)
    const { id: away } = await server.data('POST', '/api/hosts', { hostname: 'away', ip: '10.0.0.1' })
    const offline = await server.api('POST', '/api/terminals', { hostId: away, cols: 80, rows: 24 })
    t.like(offline, { status: 409, body: { message: 'away is OFFLINE: never heard' } })
    t.is((await server.data('GET', '/api/terminals')).totalElements, before)
    for (const size of [0, -1, 1e9, 1.5, '80'])
      t.is((await server.api('POST', '/api/terminals', { hostId, cols: size, rows: 24 })).status, 400)
    const nowhere = await server.api('POST', '/api/terminals', { hostId: 999, cols: 80, rows: 24 })
    t.like(nowhere, { status: 400, body: { errors: [{ field: 'hostId' }] } })
    const idle = await server.api('POST', '/api/terminals', { hostId, cols: 80, rows: 24, noStdin: true })
    t.like(idle, { status: 400, body: { errors: [{ field: 'noStdin' }] } })
  },
)

test.serial(
  'P42 a client that reconnects gets only the output after its position; a new one gets the whole replay',
  async (t) => {
    const { server, agent, hostId } = await start()
    const { sessionId } = await openTerminal(server, agent, hostId)
    const first = await ScriptedTerminal.attach(server, sessionId, { acknowledges: false })
    for (let sequence = 0; sequence < 5; sequence++)
      agent.send('TERMINAL_OUTPUT', { sessionId, data: String(sequence), sequence })
    await first.shows('01234')
    first.acknowledge(2)
    await agent.next('TERMINAL_ACK', ({ sequence }) => sequence === 2)
    const second = await ScriptedTerminal.attach(server, sessionId, { query: 'after=2' })
    t.like(await second.next('TERMINAL_ATTACHED'), { after: 2, omitted: 0 })
    t.is((await first.closed).code, 4409)
    await second.shows('34')
    t.is(second.text, '34')
    const reloaded = await ScriptedTerminal.attach(server, sessionId)
    t.like(await reloaded.next('TERMINAL_ATTACHED'), { after: -1, omitted: 0 })
    await reloaded.shows('01234')
    await reloaded.cut()
    for (const query of ['after=x', 'after=-2', 'after=1e9', 'after=5', 'after=9000000000000000'])
      await t.throwsAsync(ScriptedTerminal.attach(server, sessionId, { query }), { message: /400: after/ })
  },
)

test.serial('P43 a client cannot acknowledge output that was never sent to it', async (t) => {
  const { server, agent, hostId } = await start()
  const { sessionId } = await openTerminal(server, agent, hostId)
  const client = await ScriptedTerminal.attach(server, sessionId, { acknowledges: false })
  client.acknowledge(9e15)
  client.type('x')
  await agent.next('TERMINAL_INPUT')
  for (const sequence of [0, 1]) agent.send('TERMINAL_OUTPUT', { sessionId, data: 'x', sequence })
  await client.shows('xx')
  await agent.settled()
  t.false(agent.heard.some(({ type }) => type === 'TERMINAL_ACK'))
  client.acknowledge(9e15)
  // Output that is already recorded may be acknowledged before the rest.
  t.true((await agent.next('TERMINAL_ACK')).sequence <= 1)
})

test.serial('P41 the client that typed input dropped on the host gets one error per burst', async (t) => {
  const { server, agent, hostId } = await start()
  const { sessionId } = await openTerminal(server, agent, hostId)
  const { agent: other } = await start()
  const client = await ScriptedTerminal.attach(server, sessionId)
  const dropped = { code: 413, message: 'dropped', refId: null, sessionId }
  other.send('ERROR', dropped)
  await other.settled()
  agent.send('ERROR', { ...dropped, code: 400 })
  for (let n = 0; n < 50; n++) agent.send('ERROR', dropped)
  agent.send('TERMINAL_OUTPUT', { sessionId, data: 'end', sequence: 0 })
  await client.shows('end')
  const errors = client.heard.filter(({ type }) => type === 'ERROR')
  t.deepEqual(
    errors.map(({ payload }) => payload),
    [
      {
        code: 413,
        message: 'the program on the host does not read its input: input is dropped',
        refId: null,
      } as never,
    ],
  )
})

test.serial(
  'P42 a reconnecting client without acknowledgements gets the unwritten output, and no rsm messages',
  async (t) => {
    const { server, agent, hostId } = await start()
    const { sessionId } = await openTerminal(server, agent, hostId)
    const first = await ScriptedTerminal.attach(server, sessionId, { ofOurs: false })
    agent.send('TERMINAL_OUTPUT', { sessionId, data: 'one ', sequence: 0 })
    await first.shows('one ')
    await agent.next('TERMINAL_ACK', ({ sequence }) => sequence === 0)
    await first.cut()
    agent.send('TERMINAL_OUTPUT', { sessionId, data: 'two', sequence: 1 })
    const second = await ScriptedTerminal.attach(server, sessionId, { ofOurs: false })
    await second.shows('two')
    t.is(second.text, 'two')
    agent.send('TERMINAL_CLOSED', { sessionId, exitCode: 0, signal: null, reason: null })
    await second.next('TERMINAL_CLOSED')
    t.deepEqual([...new Set([...first.heard, ...second.heard].map(({ type }) => type))].sort(), [
      'TERMINAL_CLOSED',
      'TERMINAL_OUTPUT',
    ])
  },
)

test.serial(
  'P43 while the client is disconnected or shows nothing, no output is acknowledged to the agent',
  async (t) => {
    const { server, agent, hostId } = await start()
    const { sessionId } = await openTerminal(server, agent, hostId)
    const client = await ScriptedTerminal.attach(server, sessionId, { acknowledges: false })
    const data = 'x'.repeat(32 * 1024)
    for (let sequence = 0; sequence < 16; sequence++)
      agent.send('TERMINAL_OUTPUT', { sessionId, data, sequence })
    await agent.settled()
    // The client has received its window; the rest is held back.
    await client.next('TERMINAL_OUTPUT', ({ sequence }) => sequence === 7)
    t.true(client.last < 9)
    t.false(agent.heard.some(({ type }) => type === 'TERMINAL_ACK'))
    await client.cut()
    const back = await ScriptedTerminal.attach(server, sessionId, { query: `after=${client.last}` })
    await back.next('TERMINAL_OUTPUT', ({ sequence }) => sequence === 15)
    t.is(client.text.length + back.text.length, 16 * data.length)
    await agent.next('TERMINAL_ACK', ({ sequence }) => sequence === 15)
  },
)

test.serial('P43 a session whose agent exceeds its window is ended', async (t) => {
  const { server, agent, hostId } = await start()
  const { sessionId } = await openTerminal(server, agent, hostId)
  const data = 'x'.repeat(512 * 1024)
  for (let sequence = 0; sequence < 10; sequence++)
    agent.send('TERMINAL_OUTPUT', { sessionId, data, sequence })
  await agent.next('TERMINAL_CLOSE')
  await agent.settled()
  t.regex((await server.data('GET', `/api/terminals/${sessionId}`)).reason, /more than was asked for/)
})

test.serial(
  'P42 F20 a client cut off at any moment ends with the same text as one that never was',
  async (t) => {
    const { server, agent, hostId } = await start()
    const { sessionId } = await openTerminal(server, agent, hostId)
    const all = Array.from({ length: 400 }, (_, n) => `${n} ${'é🙂'.repeat(n % 97)}\r\n`)
    let [text, last, sent] = ['', -1, 0]
    for (let round = 0; sent < all.length || last < all.length - 1; round++) {
      const client = await ScriptedTerminal.attach(server, sessionId, { query: `after=${last}` })
      const until = Math.min(all.length, sent + 1 + ((round * 37) % 60))
      for (; sent < until; sent++)
        agent.send('TERMINAL_OUTPUT', { sessionId, data: all[sent] ?? '', sequence: sent })
      const isWhole = round % 3 === 0 || sent === all.length
      if (last < sent - 1) await client.has(isWhole ? sent - 1 : last + 1)
      if (round % 2 === 0) await client.cut()
      else client.socket.close()
      await client.closed
      text += client.text
      last = Math.max(last, client.last)
    }
    t.true(text === all.join(''), `${text.length} characters`)
    // The end of the session waits for the disk.
    await server.data('DELETE', `/api/terminals/${sessionId}`)
    const { output } = await recordingOf(server, sessionId)
    t.true(output === text, `${output.length} characters recorded`)
  },
)

async function relinked() {
  const { server, agent, identity, hostId } = await start()
  const { sessionId } = await openTerminal(server, agent, hostId)
  const client = await ScriptedTerminal.attach(server, sessionId)
  agent.send('TERMINAL_OUTPUT', { sessionId, data: 'a', sequence: 0 })
  await agent.next('TERMINAL_ACK', ({ sequence }) => sequence === 0)
  await agent.cut()
  await client.next('TERMINAL_NOTICE', ({ kind }) => kind === 'host-away')
  return { server, identity, sessionId, client }
}

const isInput = ({ type }: FromServer) => type === 'TERMINAL_INPUT'

test.serial(
  'P44 an agent that reconnects gets a signed TERMINAL_OPEN to continue; typed input waits for its answer',
  async (t) => {
    const { server, identity, sessionId, client } = await relinked()
    client.type('typed while away')
    const terminals = [
      { sessionId, lastSequence: 2 },
      { sessionId: 'unknown', lastSequence: 5 },
    ]
    const again = await ScriptedAgent.link(server, identity, { ...withTerminals, terminals })
    const frame = await again.next('TERMINAL_OPEN')
    t.like(frame, { sessionId, after: 0 })
    t.truthy(frame.signature)
    t.is((await again.next('TERMINAL_CLOSE')).sessionId, 'unknown')
    await again.settled()
    t.false(again.heard.some(isInput))
    again.send('TERMINAL_OPENED', { sessionId })
    t.is((await again.next('TERMINAL_INPUT')).data, 'typed while away')
    again.send('TERMINAL_OUTPUT', { sessionId, data: 'b', sequence: 1 })
    again.send('TERMINAL_OUTPUT', { sessionId, data: 'c', sequence: 2 })
    await client.shows('abc')
    await client.next('TERMINAL_NOTICE', ({ kind }) => kind === 'host-back')
  },
)

test.serial(
  'P44 a session ends with a reason if its agent reconnects without it, because the agent restarted',
  async (t) => {
    const { server, identity, sessionId, client } = await relinked()
    await ScriptedAgent.link(server, identity, withTerminals)
    t.regex((await client.next('TERMINAL_CLOSED')).reason ?? '', /restarted/)
    t.is((await server.data('GET', `/api/terminals/${sessionId}`)).status, 'CLOSED')
  },
)

test.serial(
  'P40 a session ends when its client closes it and upon DELETE; the agent is notified',
  async (t) => {
    const { server, agent, hostId } = await start()
    for (const leave of ['frame', 'request']) {
      const { sessionId } = await openTerminal(server, agent, hostId)
      const client = await ScriptedTerminal.attach(server, sessionId)
      if (leave === 'frame') client.send('TERMINAL_CLOSE', {})
      else t.deepEqual(await server.data('DELETE', `/api/terminals/${sessionId}`), { sessionId })
      t.is((await client.closed).code, 1000)
      t.is((await agent.next('TERMINAL_CLOSE')).sessionId, sessionId)
      // The agent's answer changes nothing; it only lets the agent forget the session.
      agent.send('TERMINAL_CLOSED', {
        sessionId,
        exitCode: 129,
        signal: 'SIGHUP',
        reason: 'the session was closed',
      })
      await agent.next('TERMINAL_CLOSE')
      t.like(await server.data('GET', `/api/terminals/${sessionId}`), { status: 'CLOSED', exitCode: null })
    }
  },
)

test.serial('P35 frames for a session of another host are refused, dropped and audited', async (t) => {
  const { server, agent, hostId } = await start()
  const { sessionId } = await openTerminal(server, agent, hostId)
  const client = await ScriptedTerminal.attach(server, sessionId)
  const { agent: other } = await start()
  const refId = other.send('TERMINAL_OUTPUT', { sessionId, data: 'evil', sequence: 0 })
  t.is((await other.next('ERROR', (error) => error.refId === refId)).code, 403)
  other.send('TERMINAL_CLOSED', { sessionId, exitCode: 0, signal: null, reason: null })
  await other.settled()
  agent.send('TERMINAL_OUTPUT', { sessionId, data: 'good', sequence: 0 })
  await client.shows('good')
  t.is(client.text, 'good')
  t.like(await audited('agent.frame', sessionId), {
    outcome: 'REFUSED',
    object: { type: 'terminal', id: sessionId },
  })
})

test.serial(
  'P41 malformed or foreign frames get ERROR, frames that are not messages close with 4400, too large ones with 1009',
  async (t) => {
    const { server, agent, hostId } = await start()
    const { sessionId } = await openTerminal(server, agent, hostId)
    const attach = () => ScriptedTerminal.attach(server, sessionId)
    const client = await attach()
    for (const cols of [0, -1, 1e9, 1.5, '80', null]) {
      const refId = client.send('TERMINAL_RESIZE', { cols: cols as number, rows: 24 })
      t.is((await client.next('ERROR', (error) => error.refId === refId)).code, 400)
    }
    const foreign = {
      type: 'TERMINAL_INPUT',
      id: 'x1',
      timestamp: '',
      payload: { sessionId: 's2', data: 'evil' },
    }
    client.socket.send(JSON.stringify(foreign))
    t.is((await client.next('ERROR', ({ refId }) => refId === 'x1')).code, 403)
    client.socket.send(JSON.stringify({ ...foreign, type: 'EXECUTE_SCRIPT', id: 'x2' }))
    t.is((await client.next('ERROR', ({ refId }) => refId === 'x2')).code, 400)
    const paste = `${'🙂'.repeat(100_000)}end`
    client.type(paste)
    let typed = ''
    while (!typed.endsWith('end')) {
      const { data } = await agent.next('TERMINAL_INPUT')
      t.true(data.length <= 16 * 1024 && !/[\ud800-\udbff]$/.test(data))
      typed += data
    }
    t.is(typed, paste)
    client.type('x'.repeat(1024 * 1024))
    t.is((await client.closed).code, 1009)
    for (const bad of ['{', '[]', 'null', '{"type":"TERMINAL_INPUT"}', Buffer.from('{}')]) {
      const one = await attach()
      one.socket.send(bad, { binary: typeof bad !== 'string' })
      t.is((await one.closed).code, 4400, String(bad))
    }
    await agent.settled()
    t.false(agent.heard.some((frame) => isInput(frame) && JSON.stringify(frame).includes('evil')))
    t.like(await audited('terminal.frame', sessionId), { outcome: 'REFUSED', actor: { name: 'admin' } })
  },
)

test.serial('P41 a client that types faster than its host reads is paused, and loses nothing', async (t) => {
  const { server, agent, hostId } = await start()
  const { sessionId } = await openTerminal(server, agent, hostId)
  const client = await ScriptedTerminal.attach(server, sessionId)
  agent.socket.pause()
  const frames = 64
  const piece = 'x'.repeat(512 * 1024)
  for (let n = 0; n < frames; n++) client.type(piece)
  client.type('END')
  // Frames that the server does not read stay in the sender's buffer.
  let before = -1
  await until('the server to stop reading', () => {
    const { bufferedAmount } = client.socket
    const isSame = bufferedAmount === before
    before = bufferedAmount
    return isSame
  })
  t.true(before > (frames / 2) * piece.length)
  agent.socket.resume()
  let length = 0
  for (let data = ''; !data.endsWith('END'); length += data.length)
    data = (await agent.next('TERMINAL_INPUT')).data
  t.is(length, frames * piece.length + 3)
})

async function watched(t: ExecutionContext) {
  const { server, agent, hostId } = await start()
  const username = `user${hostId}`
  await server.data('POST', '/api/users', { username, password: 'long enough', role: 'OPERATOR' })
  const login = { username, password: 'long enough' }
  const { token } = await server.data('POST', '/api/auth/login', login)
  const asked = server.api(
    'POST',
    '/api/terminals',
    { hostId, cols: 80, rows: 24 },
    { authorization: `Bearer ${token}` },
  )
  const { sessionId } = await agent.next('TERMINAL_OPEN')
  agent.send('TERMINAL_OPENED', { sessionId })
  t.is((await asked).status, 201)
  return { server, agent, sessionId, token, hostId, username }
}

test.serial(
  'P45 a client without notices shows in the terminal who is watching, and the recording omits it',
  async (t) => {
    const { server, agent, sessionId, token } = await watched(t)
    const attach = () => ScriptedTerminal.attach(server, sessionId, { token, ofOurs: false })
    const client = await attach()
    const watcher = await ScriptedTerminal.attach(server, sessionId, { query: 'watch=true' })
    const line = '\r\n[rsm: admin reads along]\r\n'
    await client.shows(line)
    agent.send('TERMINAL_OUTPUT', { sessionId, data: 'out', sequence: 0 })
    await client.shows(`${line}out`)
    t.deepEqual(
      client.heard.map(({ payload }) => ('sequence' in payload ? payload.sequence : null)),
      [null, 0],
    )
    const next = await attach()
    await next.shows(line)
    t.is((await client.closed).code, 4409)
    watcher.socket.close()
    await next.shows('\r\n[rsm: admin no longer reads along]\r\n')
    t.is(watcher.text, 'out')
    await server.data('DELETE', `/api/terminals/${sessionId}`)
    t.deepEqual((await recordingOf(server, sessionId)).events, [['o', 'out']])
  },
)

test.serial('P45 an ADMIN can watch a session but not type, and the user is notified', async (t) => {
  const { server, agent, sessionId, token, username } = await watched(t)
  const client = await ScriptedTerminal.attach(server, sessionId, { token })
  agent.send('TERMINAL_OUTPUT', { sessionId, data: 'before ', sequence: 0 })
  await client.shows('before ')
  const watcher = await ScriptedTerminal.attach(server, sessionId, { query: 'watch=true' })
  t.like(await watcher.next('TERMINAL_ATTACHED'), { after: -1, last: 0, watching: true, watchers: ['admin'] })
  t.like(await client.next('TERMINAL_NOTICE'), { kind: 'watched', message: 'admin reads along' })
  agent.send('TERMINAL_OUTPUT', { sessionId, data: 'after', sequence: 1 })
  await watcher.shows('before after')
  const refId = watcher.send('TERMINAL_INPUT', { data: 'evil' })
  t.is((await watcher.next('ERROR', (error) => error.refId === refId)).code, 403)
  t.like(await server.data('GET', `/api/terminals/${sessionId}`), { user: username, watchers: ['admin'] })
  watcher.socket.close()
  t.like(await client.next('TERMINAL_NOTICE'), { kind: 'unwatched' })
  await agent.settled()
  t.false(agent.heard.some(isInput))
  t.like(await audited('terminal.watch', sessionId), {
    actor: { name: 'admin' },
    object: { type: 'terminal', id: sessionId },
    detail: { user: username },
  })
  await t.throwsAsync(ScriptedTerminal.attach(server, sessionId), { message: /403/ })
  await t.throwsAsync(ScriptedTerminal.attach(server, sessionId, { token, query: 'watch=true' }), {
    message: /403/,
  })
})

test.serial(
  'the recording of an open session is readable by its user alone; an ADMIN must wait for the end',
  async (t) => {
    const { server, agent, sessionId, token } = await watched(t)
    const client = await ScriptedTerminal.attach(server, sessionId, { token })
    agent.send('TERMINAL_OUTPUT', { sessionId, data: 'shown', sequence: 0 })
    await client.shows('shown')
    const read = (as?: string) =>
      server.api(
        'GET',
        `/api/terminals/${sessionId}/recording`,
        undefined,
        as === undefined ? {} : { authorization: `Bearer ${as}` },
      )
    const refused = await read()
    t.is(refused.status, 409)
    t.regex(refused.body.message, /is open.* rsm terminal --watch/)
    t.regex((await read(token)).body.data, /shown/)
    agent.send('TERMINAL_CLOSED', { sessionId, exitCode: 0, signal: null, reason: null })
    await until('its end', async () => (await read()).status === 200)
    t.regex((await read()).body.data, /shown/)
  },
)

test.serial(
  'P40 S01 a session ends when its token, its agent’s token or its host is revoked or removed',
  async (t) => {
    const ends: Record<string, (world: Awaited<ReturnType<typeof watched>>) => Promise<unknown>> = {
      logout: ({ server, token }) =>
        server.api('POST', '/api/auth/logout', undefined, { authorization: `Bearer ${token}` }),
      role: async ({ server, username }) => {
        const { content } = await server.data('GET', `/api/users?search=${username}`)
        await server.data('PATCH', `/api/users/${content[0].id}`, { role: 'VIEWER' })
      },
      disabled: async ({ server, username }) => {
        const { content } = await server.data('GET', `/api/users?search=${username}`)
        await server.data('PATCH', `/api/users/${content[0].id}`, { enabled: false })
      },
      agent: ({ server, hostId }) => server.data('DELETE', `/api/hosts/${hostId}/agent`),
      host: ({ server, hostId }) => server.data('DELETE', `/api/hosts/${hostId}`),
    }
    for (const [what, end] of Object.entries(ends)) {
      const world = await watched(t)
      const { server, sessionId, token } = world
      const client = await ScriptedTerminal.attach(server, sessionId, { token })
      await client.next('TERMINAL_ATTACHED')
      await end(world)
      t.truthy((await client.next('TERMINAL_CLOSED')).reason, what)
      t.is((await client.closed).code, 4401, what)
      t.is((await server.data('GET', `/api/terminals/${sessionId}`)).status, 'CLOSED')
    }
  },
)

test.serial(
  'a host that cannot open terminals gives the reason when one is opened and to rsm hosts doctor',
  async (t) => {
    const identity = await server.enroll(`web${++hosts}`)
    const terminalLack = 'this host has no /dev/ptmx,\u0007 which opens terminals'
    const agent = await ScriptedAgent.link(server, identity, { capabilities: { terminalLack } })
    await agent.settled()
    const said = terminalLack.replace('\u0007', '\ufffd')
    const { hostId } = identity
    t.like(await server.api('POST', '/api/terminals', { hostId, cols: 80, rows: 24 }), {
      status: 409,
      body: { message: `web${hosts} has no terminal facility: ${said}` },
    })
    t.like((await server.data('GET', `/api/hosts/${hostId}`)).agent, { terminal: false, terminalLack: said })
  },
)
