import { randomBytes } from 'node:crypto'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import test from 'ava'
import { WebSocket } from 'ws'
import { createLog } from '../../../src/disk/log.ts'
import { createKeys, newSigningKey } from '../../../src/server/storage/keys.ts'
import type { Relay, TerminalSite } from '../../../src/server/storage/ports/cluster.ts'
import type { TerminalClient } from '../../../src/server/storage/ports/terminals.ts'
import { relayPath } from '../../../src/server/terminals/relay/channel.ts'
import { keptCertificate } from '../../../src/server/tls/tls.ts'
import { relayContract } from '../../contracts/relay.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { startCutLink } from '../../helpers/faults/cut-link.ts'
import { listeningRelay, memoryPeers, sharedKeys } from '../../helpers/servers/relays.ts'
import { idleAttachment, noSite } from '../../helpers/terminals/no-site.ts'
import { notedClient } from '../../helpers/terminals/noted-client.ts'
import { until } from '../../helpers/until.ts'

const attach = { after: null, watch: false }
type Listening = Parameters<typeof listeningRelay>[3]

/** Servers that serve, and another that calls them. */
relayContract(test, async (t) => {
  const peers = memoryPeers()
  const open = async (name: string) => {
    const member = peers.member(name)
    return listeningRelay(t, member, peers.of(member))
  }
  const serving = new Map<number, Awaited<ReturnType<typeof open>>>()
  const asking = (await open('asking')).relay
  const relay: Relay = {
    serve: (member, site) => serving.get(member.epoch)?.relay.serve(member, site) ?? (() => undefined),
    at: (member) => asking.at(member),
    having: (sessionId) => asking.having(sessionId),
  }
  return {
    relay,
    async join(name) {
      const opened = await open(name)
      serving.set(opened.member.epoch, opened)
      return opened.member
    },
  }
})

/** A relay with a site, and the relay of another server. */
async function two(t: ExecutionContext, site: Partial<TerminalSite>, listening: Listening = {}) {
  const peers = memoryPeers()
  const [a, b] = [peers.member('a'), peers.member('b')]
  const [near, far] = [
    await listeningRelay(t, a, peers.of(a)),
    await listeningRelay(t, b, peers.of(b), listening),
  ]
  far.relay.serve(b, { ...noSite, has: async (id) => id === 's1', ...site })
  const found = async () => {
    const there = await near.relay.having('s1')
    if (!there) throw new Error('it has the session')
    return there
  }
  return { peers, near, far, found }
}

const echo: Partial<TerminalSite> = {
  attach: (_, client) => ({
    ...idleAttachment,
    input: (data) => client.output(0, Buffer.from(JSON.stringify(data)), () => undefined),
  }),
}

test('messages of any size and text arrive whole and in order', async (t) => {
  const heard: string[] = []
  const odd = '\u0000\ud800"\\€'
  const { found } = await two(t, {
    attach: (_, client) => ({
      ...idleAttachment,
      input(data, frameId) {
        heard.push(data)
        client.output(heard.length - 1, Buffer.from(JSON.stringify(frameId)), () => undefined)
      },
    }),
    end: async (id, reason) => void heard.push(`${id} ${reason.length}`),
  })
  const there = await found()
  const { client, heard: told } = notedClient()
  const attachment = there.attach('s1', client, attach)
  const typed = [odd, ...Array.from({ length: 300 }, (_, n) => 'x'.repeat(n * 97)), 'end']
  for (const [n, data] of typed.entries()) attachment.input(data, `f${n}`)
  await until(
    'all input is answered',
    () => told.filter((one) => one.startsWith('output')).length === typed.length,
  )
  await there.end('s1', 'y'.repeat(100_000))
  t.deepEqual(heard, [...typed, 's1 100000'])
  t.deepEqual(
    told.filter((one) => one.startsWith('output')),
    typed.map((_, n) => `output ${n} "f${n}"`),
  )
})

test('the caller of a client is forwarded completely, with a token that never expires', async (t) => {
  const callers: unknown[] = []
  const { found } = await two(t, {
    attach(_, client) {
      callers.push(client.caller)
      return idleAttachment
    },
    open: async ({ caller }) => void callers.push(caller),
  })
  const there = await found()
  const { client, caller } = notedClient()
  there.attach('s1', client, attach)
  await there.open({ record: {} as never, caller })
  await until('it is attached', () => callers.length === 2)
  t.deepEqual(callers, [caller, caller])
})

test('P43 a client that types faster than the connection is paused, and resumed later', async (t) => {
  let bytes = 0
  const { found } = await two(t, {
    attach: () => ({ ...idleAttachment, input: (data) => void (bytes += data.length) }),
  })
  const { client, heard } = notedClient()
  const attachment = (await found()).attach('s1', client, attach)
  for (let n = 0; n < 100; n++) attachment.input('x'.repeat(10_000), 'f')
  t.deepEqual(heard, ['held'])
  await until('all input has arrived', () => bytes === 1_000_000)
  await until('the client is resumed', () => heard.length === 2)
  t.deepEqual(heard, ['held', 'released'])
})

test('a client that the terminal pauses as well resumes only when both allow it', async (t) => {
  const terminals: TerminalClient[] = []
  const { found } = await two(t, {
    attach(_, client) {
      terminals.push(client)
      return idleAttachment
    },
  })
  const { client, heard } = notedClient()
  const attachment = (await found()).attach('s1', client, attach)
  await until('it is attached', () => terminals.length === 1)
  terminals[0]?.pause()
  await until('the client is paused', () => heard.length === 1)
  for (let n = 0; n < 20; n++) attachment.input('x'.repeat(10_000), 'f')
  terminals[0]?.notify({ sessionId: 's1', kind: 'watched', message: 'all is typed' })
  await until('the notice has arrived', () => heard.includes('watched'))
  t.deepEqual(heard, ['held', 'watched'])
  terminals[0]?.resume()
  await until('the client is resumed', () => heard.length === 3)
  t.deepEqual(heard, ['held', 'watched', 'released'])
})

test('output for a client without acknowledgements counts as sent once its socket takes it', async (t) => {
  let written = 0
  const { found } = await two(t, {
    attach(_, client) {
      for (let n = 0; n < 50; n++) client.output(n, Buffer.from('"x"'), () => void written++)
      return idleAttachment
    },
  })
  const taken: (() => void)[] = []
  const { client } = notedClient()
  const slow = {
    ...client,
    acknowledges: false,
    output: (_: number, __: unknown, took: () => void) => void taken.push(took),
  }
  ;(await found()).attach('s1', slow, attach)
  await until('all output has arrived', () => taken.length === 50)
  t.is(written, 0)
  for (const took of taken.slice(0, 20)) took()
  await until('20 pieces are confirmed', () => written === 20)
  for (const took of taken.slice(20)) took()
  await until('all pieces are confirmed', () => written === 50)
})

test('a failed attachment closes the client as a direct socket would; other errors reveal no details', async (t) => {
  const { found, far } = await two(t, {
    attach() {
      throw new Error('secret detail')
    },
    async expect() {
      throw new TypeError('secret detail')
    },
  })
  const there = await found()
  const { client, heard } = notedClient()
  there.attach('s1', client, attach)
  await until('it is closed', () => heard.length === 2)
  t.deepEqual(heard, ['ERROR', 'closed 1013 the session cannot be attached'])
  await t.throwsAsync(there.expect('s1', null), {
    code: 'internal',
    message: 'the server of the session failed',
  })
  t.deepEqual(far.faults, ['a call of another server failed'])
})

test('P42 a cut connection closes the client, its attachment and pending calls; then the servers reconnect', async (t) => {
  let gone = 0
  const links: Awaited<ReturnType<typeof startCutLink>>[] = []
  const through = async (url: string) => {
    links.push(await startCutLink(t, url))
    return links[0]?.url ?? ''
  }
  const site = {
    attach: () => ({ ...idleAttachment, gone: () => void gone++ }),
    end: () => new Promise<void>(() => undefined),
  }
  const { found } = await two(t, site, { through })
  const there = await found()
  const { client, heard } = notedClient()
  there.attach('s1', client, attach)
  const asked = t.throwsAsync(there.end('s1', ''), { code: 'unavailable' })
  await there.has('s1')
  links[0]?.cut()
  await asked
  await until('both sides notice', () => heard.length === 1 && gone === 1)
  t.deepEqual(heard, ['closed 1001 the connection to the server of the session was lost'])
  t.true(await (await found()).has('s1'))
})

test('a server whose lease expired is given up: pending calls fail and clients on both sides are closed', async (t) => {
  let gone = 0
  const { found, peers, near, far } = await two(t, {
    attach: () => ({ ...idleAttachment, gone: () => void gone++ }),
    end: () => new Promise<void>(() => undefined),
  })
  const there = await found()
  const { client, heard } = notedClient()
  there.attach('s1', client, attach)
  const asked = t.throwsAsync(there.end('s1', ''), { code: 'unavailable' })
  await there.has('s1')
  peers.lose(far.member)
  await asked
  await until('both sides notice', () => heard.length === 1 && gone === 1)
  t.is(await near.relay.having('s1'), null)
})

/** A site that records how its client leaves, an attachment to it, and the connections between the servers. */
async function leaving(t: ExecutionContext) {
  const told: string[] = []
  const server = createHttpServer()
  const connections = () =>
    new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)))
  const site: Partial<TerminalSite> = {
    attach: () => ({
      ...idleAttachment,
      gone: () => void told.push('gone'),
      parted: () => void told.push('parted'),
    }),
  }
  const { found } = await two(t, site, { server })
  const there = await found()
  const { client, heard } = notedClient()
  const attachment = there.attach('s1', client, attach)
  await until('it is connected, beside the calls', async () => (await connections()) === 2)
  return { told, heard, there, attachment, connections }
}

test('a client whose socket closes cleanly is reported as parted, and its WebSocket closes', async (t) => {
  const { told, heard, attachment, connections } = await leaving(t)
  attachment.gone()
  attachment.parted()
  await until('its WebSocket is closed', async () => (await connections()) === 1)
  t.deepEqual(told, ['gone', 'parted'])
  t.deepEqual(heard, [], 'a client that is gone gets nothing more')
})

test('the WebSocket of a client whose socket closes uncleanly closes a few seconds later', async (t) => {
  const { told, heard, there, attachment, connections } = await leaving(t)
  attachment.gone()
  await until('the terminal is notified', () => told.length === 1)
  await there.has('s1')
  t.is(await connections(), 2, 'its socket may still close cleanly')
  await until('its WebSocket is closed', async () => (await connections()) === 1)
  t.deepEqual(told, ['gone'])
  t.deepEqual(heard, [])
})

test('a server that cannot be reached is named, with a remedy, until it can be reached', async (t) => {
  const closed = createServer()
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
  const { port } = closed.address() as AddressInfo
  closed.close()
  const { near, far } = await two(t, {}, { through: async () => `http://127.0.0.1:${port}` })
  const message = `Server a cannot reach server b at http://127.0.0.1:${port}: connect ECONNREFUSED 127.0.0.1:${port}; b may need --advertise with another address`
  await t.throwsAsync(near.relay.having('s1'), { code: 'unavailable', message })
  t.is(near.relay.fault('b'), message)
  await far.relay.listensAt({ url: far.url, pin: null })
  t.not(await near.relay.having('s1'), null)
  t.is(near.relay.fault('b'), null)
})

async function certificate(t: ExecutionContext) {
  const log = { ...createLog('ERROR') }
  const { key, cert, fingerprint } = await keptCertificate(
    temporaryDirectory(t),
    '127.0.0.1',
    log,
    Date.now(),
  )
  return { server: createSecureServer({ key, cert }), pin: fingerprint }
}

test('S04 over TLS a server gets no data unless its certificate has the registered key', async (t) => {
  const own = await certificate(t)
  const { found, near, far } = await two(t, echo, own)
  const { client, heard } = notedClient()
  ;(await found()).attach('s1', client, attach).input('typed', 'f')
  await until('it answers', () => heard.length === 1)
  t.deepEqual(heard, ['output 0 "typed"'])
  const other = await certificate(t)
  const asked: string[] = []
  other.server.on('upgrade', ({ url }) => void asked.push(String(url)))
  const port = await new Promise<number>((resolve) => {
    other.server.listen(0, '127.0.0.1', () => resolve((other.server.address() as AddressInfo).port))
  })
  t.teardown(() => other.server.close())
  far.relay.close()
  await until('the connection is lost', () => heard.length === 2)
  await far.relay.listensAt({ url: `https://127.0.0.1:${port}`, pin: own.pin })
  await t.throwsAsync(near.relay.having('s1'), {
    message: /the key of its certificate is not the registered one/,
  })
  await far.relay.listensAt({ url: `https://127.0.0.1:${port}`, pin: null })
  await t.throwsAsync(near.relay.having('s1'), { message: /self-signed certificate/ })
  t.deepEqual(asked, [])
})

test('S04 write access to the database cannot lead a server to another address', async (t) => {
  const { near, far, peers } = await two(t, {})
  const strangers = createKeys(randomBytes(32), newSigningKey())
  const endpoint = JSON.stringify({ url: 'http://127.0.0.1:1', pin: null })
  const own = peers.living.get(near.member.epoch)?.endpoint ?? ''
  for (const forged of [
    '',
    endpoint,
    strangers.seal(endpoint, `servers/${far.member.epoch}/endpoint`),
    own,
  ]) {
    peers.living.set(far.member.epoch, { ...far.member, endpoint: forged })
    t.is(await near.relay.at(far.member), null, forged)
  }
})

test("S04 a server accepts only tickets sealed with the store's key, for its current run, in time", async (t) => {
  const { far } = await two(t, {})
  const statusOf = (authorization: string) =>
    new Promise((resolve) => {
      const socket = new WebSocket(far.url.replace('http', 'ws') + relayPath, { headers: { authorization } })
      socket.once('unexpected-response', (_, { statusCode }) => resolve(statusCode))
      socket.once('open', () => {
        socket.terminate()
        resolve(101)
      })
      socket.on('error', () => undefined)
    })
  const ticket = JSON.stringify({ from: 1, until: Date.now() + 60_000, attach: null })
  const context = `servers/${far.member.epoch}/ticket`
  const strangers = createKeys(randomBytes(32), newSigningKey())
  const late = JSON.stringify({ from: 1, until: Date.now() - 1, attach: null })
  for (const refused of [
    '',
    'Bearer x',
    `Server ${ticket}`,
    `Server ${strangers.seal(ticket, context)}`,
    `Server ${sharedKeys.seal(ticket, 'servers/99/ticket')}`,
    `Server ${sharedKeys.seal(late, context)}`,
  ])
    t.is(await statusOf(refused), 401, refused)
  t.is(await statusOf(`Server ${sharedKeys.seal(ticket, context)}`), 101)
})

test('a server that stops accepts no connections', async (t) => {
  const { near, far } = await two(t, {})
  far.relay.close()
  await t.throwsAsync(near.relay.having('s1'), { code: 'unavailable' })
})

test('a server that has stopped connects to no other, and reports no fault', async (t) => {
  const { near, found } = await two(t, {})
  const there = await found()
  near.relay.close()
  await until('the calls have ended', async () => {
    const error = await t.throwsAsync(there.has('s1'), { code: 'unavailable' })
    return error?.message === 'The server is shutting down'
  })
  const stopping = { code: 'unavailable', message: 'The server is shutting down' }
  await t.throwsAsync(near.relay.having('s1'), stopping)
  t.throws(() => there.attach('s1', notedClient().client, attach), stopping)
  t.is(near.relay.fault('b'), null)
})

test('a server that accepts connections but does not answer is given up', async (t) => {
  const silent = createServer((socket) => void socket.on('error', () => undefined).resume())
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void silent.close())
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  const { near, far } = await two(t, {}, { through: async () => url })
  await t.throwsAsync(near.relay.having('s1'), { code: 'unavailable', message: /timed out/ })
  await far.relay.listensAt({ url: url.replace('http', 'https'), pin: 'sha256//x' })
  await t.throwsAsync(near.relay.having('s1'), { code: 'unavailable', message: /no TLS in time|timed out/ })
})

test('P43 a client of a server that stops reading is closed, and its backlog stays within a bound', async (t) => {
  const links: Awaited<ReturnType<typeof startCutLink>>[] = []
  const through = async (url: string) => {
    links.push(await startCutLink(t, url))
    return links[0]?.url ?? ''
  }
  const terminals: TerminalClient[] = []
  const { found } = await two(
    t,
    {
      attach(_, client) {
        terminals.push(client)
        return idleAttachment
      },
    },
    { through },
  )
  const { client, heard } = notedClient()
  ;(await found()).attach('s1', client, attach)
  await until('it is attached', () => terminals.length === 1)
  links[0]?.freeze({ standing: true })
  const message = 'x'.repeat(1024 * 1024)
  for (let n = 0; n < 50; n++) {
    terminals[0]?.notify({ sessionId: 's1', kind: 'watched', message })
    await setImmediate()
  }
  links[0]?.thaw()
  await until('it is closed', () => heard.some((one) => one.startsWith('closed')))
  t.is(heard.at(-1), 'closed 1013 the client does not read')
  t.true(heard.length < 50, `${heard.length} messages were kept`)
})
