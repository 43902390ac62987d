import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ExecutionContext } from 'ava'
import { createKeys } from '../../../src/server/storage/keys/keys.ts'
import type { Relay, TerminalSite } from '../../../src/server/storage/ports/cluster.ts'
import type { TerminalClient } from '../../../src/server/storage/ports/terminal-client.ts'
import type { Database } from '../../../src/server/storage/postgres/connection/database.ts'
import { FrameSealer } from '../../../src/server/storage/postgres/relay/sealed-frames.ts'
import { relayContract } from '../../contracts/relay.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import {
  atExit,
  sharedPostgres,
  startPostgres,
  postgresTest as test,
} from '../../helpers/servers/postgres.ts'
import { joined, openRelay, sharedKeyFiles, sharedKeysAsText } from '../../helpers/servers/relays.ts'
import { idleAttachment, noSite } from '../../helpers/terminals/no-site.ts'
import { notedClient } from '../../helpers/terminals/noted-client.ts'
import { until } from '../../helpers/until.ts'

const postgres = sharedPostgres()
const newDatabase = async () => (await postgres).database()
const attach = { after: null, watch: false }

/** One server that serves, another that asks: each of them has its own connections. */
relayContract(test, async (t) => {
  const url = await newDatabase()
  const [serving, asking] = [openRelay(t, url, 'serving'), openRelay(t, url, 'asking')]
  const relay: Relay = {
    serve: (member, site) => serving.relay.serve(member, site),
    async at(member) {
      await serving.relay.settled()
      return asking.relay.at(member)
    },
    async having(sessionId) {
      await serving.relay.settled()
      return asking.relay.having(sessionId)
    },
  }
  return { relay, join: (name) => joined(serving.database, name) }
})

/** A relay with a site, and the relay of another server. */
async function two(t: ExecutionContext, site: Partial<TerminalSite>, url?: string) {
  const own = url ?? (await newDatabase())
  const [a, b] = [openRelay(t, own, 'a'), openRelay(t, own, 'b')]
  const member = await joined(b.database, 'b')
  const stop = b.relay.serve(member, { ...noSite, has: async (id) => id === 's1', ...site })
  await b.relay.settled()
  const there = await a.relay.having('s1')
  if (!there) throw new Error('it has the session')
  return { a, b, member, there, stop, url: own }
}

test('what is typed, and what a call asks, is bounded by no frame: messages of any size and text arrive whole and in order', async (t) => {
  const heard: string[] = []
  const odd = '\u0000\ud800"\\€'
  const { there } = await two(t, {
    attach: (_, client) => ({
      ...idleAttachment,
      input(data, frameId) {
        heard.push(data)
        client.output(heard.length - 1, Buffer.from(JSON.stringify(frameId)), () => undefined)
      },
    }),
    end: async (id, reason) => void heard.push(`${id} ${reason.length}`),
  })
  const { client, heard: told } = notedClient()
  const attachment = there.attach('s1', client, attach)
  const typed = [odd, ...Array.from({ length: 300 }, (_, n) => 'x'.repeat(n * 97)), 'end']
  for (const [n, data] of typed.entries()) attachment.input(data, `f${n}`)
  await there.end('s1', 'y'.repeat(100_000))
  t.deepEqual(heard, [...typed, 's1 100000'])
  await until('all is answered', () => told.length >= typed.length)
  t.deepEqual(
    told.filter((one) => one.startsWith('output')),
    typed.map((_, n) => `output ${n} "f${n}"`),
  )
})

test('P43 a client that types faster than the way takes it is held, and goes on', async (t) => {
  let bytes = 0
  const { there } = await two(t, {
    attach: () => ({ ...idleAttachment, input: (data) => void (bytes += data.length) }),
  })
  const { client, heard } = notedClient()
  const attachment = there.attach('s1', client, attach)
  for (let n = 0; n < 100; n++) attachment.input('x'.repeat(10_000), 'f')
  t.deepEqual(heard, ['held'])
  await until('all is typed', () => bytes === 1_000_000)
  await until('it may go on', () => heard.length === 2)
  t.deepEqual(heard, ['held', 'released'])
})

test('who is held by the terminal as well goes on when both let it', async (t) => {
  const terminals: TerminalClient[] = []
  const { there } = await two(t, {
    attach(_, client) {
      terminals.push(client)
      return idleAttachment
    },
  })
  const { client, heard } = notedClient()
  const attachment = there.attach('s1', client, attach)
  await there.has('s1')
  terminals[0]?.hold()
  await until('it is held', () => heard.length === 1)
  for (let n = 0; n < 20; n++) attachment.input('x'.repeat(10_000), 'f')
  await there.has('s1')
  t.deepEqual(heard, ['held'])
  terminals[0]?.release()
  await until('it may go on', () => heard.length === 2)
  t.deepEqual(heard, ['held', 'released'])
})

test('a client that acknowledges nothing is sent what its socket has taken', async (t) => {
  let written = 0
  const { there } = await two(t, {
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
  there.attach('s1', slow, attach)
  await until('all has come', () => taken.length === 50)
  t.is(written, 0)
  for (const took of taken.slice(0, 20)) took()
  await until('that is told', () => written === 20)
  for (const took of taken.slice(20)) took()
  await until('all is told', () => written === 50)
})

test('what can not be attached is told as by a socket of its server, and another error as no more than that', async (t) => {
  const { there, b } = await two(t, {
    attach() {
      throw new Error('secret detail')
    },
    async expect() {
      throw new TypeError('secret detail')
    },
  })
  const { client, heard } = notedClient()
  there.attach('s1', client, attach)
  await until('it is closed', () => heard.length === 2)
  t.deepEqual(heard, ['ERROR', 'closed 1013 the session cannot be attached'])
  await t.throwsAsync(there.expect('s1', null), {
    code: 'internal',
    message: 'the server of the session failed',
  })
  t.deepEqual(b.faults, ['a call of another server failed'])
})

test('when PostgreSQL is restarted clients are closed, attachments are gone, and afterwards both find each other', async (t) => {
  const own = await startPostgres(atExit)
  let gone = 0
  const { a, there } = await two(
    t,
    { attach: () => ({ ...idleAttachment, gone: () => void gone++ }) },
    await own.database(),
  )
  const { client, heard } = notedClient()
  there.attach('s1', client, attach)
  await there.has('s1')
  own.stop('immediate')
  await until('both know', () => heard.length === 1 && gone === 1)
  t.deepEqual(heard, ['closed 1001 the way to the server of the session was lost'])
  await t.throwsAsync(there.has('s1'), { code: 'unavailable' })
  await t.throwsAsync(a.relay.having('s1'), { code: 'unavailable' })
  own.start()
  await until('it is found again', async () => (await a.relay.having('s1')) !== null)
})

test('S04 who may connect to the database reads nothing of terminals, and can type nothing into them', async (t) => {
  const typed: string[] = []
  const { a, there, url } = await two(t, {
    attach: () => ({ ...idleAttachment, input: (data) => void typed.push(data) }),
  })
  const spy = await openDatabase(t, url, 'spy').connect()
  t.teardown(() => spy.end())
  const [row] = await a.database.ask<{ wire: number }>('api', 'select wire from rsm.relay_sites')
  const channel = `rsm_relay_${row?.wire}`
  const frames: string[] = []
  spy.on('notification', ({ payload = '' }) => frames.push(payload))
  await spy.query(`listen ${channel}`)
  const { client } = notedClient()
  const attachment = there.attach('s1', client, attach)
  attachment.input('my password', 'f')
  await until('it is typed', () => typed.length === 1 && frames.some((frame) => !frame.includes('key')))
  const plain = frames.map(
    (frame) => `${frame} ${Buffer.from(frame.split(' ').at(-1) ?? '', 'base64').toString('latin1')}`,
  )
  t.false(plain.some((text) => text.includes('password')))
  const [from = ''] = frames[0]?.split(' ') ?? []
  const forged = [
    ...frames,
    `${from} key AAAA`,
    `${from} ${Buffer.alloc(100).toString('base64')}`,
    'x',
    '1',
    '',
  ]
  for (const frame of forged) await spy.query('select pg_notify($1, $2)', [channel, frame])
  attachment.input('more', 'f')
  await until('what is ours arrives', () => typed.length === 2)
  t.deepEqual(typed, ['my password', 'more'])
})

const program = fileURLToPath(new URL('../../fixtures/relay-server.js', import.meta.url))

const setLease = (database: Database, left: string) =>
  database.ask(
    'api',
    `update rsm.servers set lease_until = rsm.now() + interval '${left}' where name = 'other'`,
  )

/** Another server process, which serves the session `sessionId` or is a client of it; resolves when it is ready. */
async function otherServer(t: ExecutionContext, url: string, how: 'serve' | 'attach'): Promise<ChildProcess> {
  const child = spawn(process.execPath, [program, url, sharedKeysAsText, how], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  await once(createInterface({ input: child.stdout }), 'line')
  return child
}

test('P42 when the server of a session is killed its client is closed, and what was asked is unavailable', async (t) => {
  const url = await newDatabase()
  const { relay } = openRelay(t, url, 'a')
  const child = await otherServer(t, url, 'serve')
  const there = await relay.having('s1')
  const { client, heard } = notedClient()
  const attachment = there?.attach('s1', client, attach)
  attachment?.input('echo', 'f')
  await until('it answers', () => heard.length === 1)
  const asked = t.throwsAsync(async () => there?.end('never', ''), { code: 'unavailable' })
  child.kill('SIGKILL')
  await until('the client is told', () => heard.length === 2)
  t.deepEqual(heard, ['output 0 "echo"', 'closed 1001 the way to the server of the session was lost'])
  await asked
  t.is(await relay.having('s1'), null)
})

test('P42 when the server of a client is killed the attachment is gone', async (t) => {
  let gone = 0
  const { url } = await two(t, { attach: () => ({ ...idleAttachment, gone: () => void gone++ }) })
  const child = await otherServer(t, url, 'attach')
  child.kill('SIGKILL')
  await until('the terminal knows', () => gone > 0)
  t.is(gone, 1)
})

test('a server that stands still past its lease is not waited for, and its clients are closed; when it goes on it is found again', async (t) => {
  const url = await newDatabase()
  const { relay, database } = openRelay(t, url, 'a')
  const child = await otherServer(t, url, 'serve')
  const there = await relay.having('s1')
  const { client, heard } = notedClient()
  there?.attach('s1', client, attach)
  await there?.has('s1')
  child.kill('SIGSTOP')
  const asked = relay.having('s1')
  await setLease(database, '-1 s')
  await until('its client is closed', () => heard.length === 1)
  t.is(await asked, null)
  t.is(await relay.having('s1'), null)
  await setLease(database, '1 hour')
  child.kill('SIGCONT')
  const again = await relay.having('s1')
  const { client: next, heard: nextHeard } = notedClient()
  again?.attach('s1', next, attach).input('echo', 'f')
  await until('it answers', () => nextHeard.length === 1)
  t.deepEqual(nextHeard, ['output 0 "echo"'])
})

test('clients of a server that stood still past its lease are closed when it goes on', async (t) => {
  let gone = 0
  const { b, url } = await two(t, { attach: () => ({ ...idleAttachment, gone: () => void gone++ }) })
  const child = await otherServer(t, url, 'attach')
  child.kill('SIGSTOP')
  await setLease(b.database, '-1 s')
  await until('the terminal knows', () => gone === 1)
  child.kill('SIGCONT')
  if (!child.stdout) throw new Error('it is piped')
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  t.is(line, 'closed 1001')
})

test('a server to which a frame is lost begins anew, and is found again', async (t) => {
  const { a, member, there } = await two(t, {})
  const wireOf = async () =>
    (await a.database.ask<{ wire: number }>('api', 'select wire from rsm.relay_sites'))[0]?.wire
  const wire = await wireOf()
  const sealer = new FrameSealer(createKeys(...sharedKeyFiles), 7, wire ?? 0)
  sealer.seal(Buffer.from('never sent'))
  for (const frame of [`7 key ${sealer.opening}`, `7 ${sealer.seal(Buffer.from('sent'))}`])
    await a.database.ask('api', 'select pg_notify($1, $2)', [`rsm_relay_${wire}`, frame])
  await until('it has another wire', async () => (await wireOf()) !== wire)
  t.true(await (await a.relay.at(member))?.has('s1'))
  await t.throwsAsync(there.has('s1'), { code: 'unavailable' }, 'the former wire is no more')
})
