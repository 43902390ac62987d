import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { terminal } from '../../helpers/servers/store-records.ts'
import { notedClient } from '../../helpers/terminals/noted-client.ts'
import { openSites } from '../../helpers/terminals/sites.ts'
import { until } from '../../helpers/until.ts'

const attach = { after: null, watch: false }

test('a client of one server reaches an agent linked to another', async (t) => {
  const { data, start, link, openSession } = await openSites(t)
  const [a, b] = [await start('a'), await start('b')]
  const agent = await link(b, 1)
  await openSession(a)
  const there = await a.terminals.site('s1')
  await there.expect('s1', null)
  const { client, heard } = notedClient()
  const attachment = there.attach('s1', client, attach)
  attachment.input('ls\r', 'f1')
  attachment.resize(100, 40)
  await agent.output(0, 'web1$ ')
  t.deepEqual(heard, ['TERMINAL_ATTACHED', 'output 0 "web1$ "'])
  t.deepEqual(
    [agent.sent('TERMINAL_INPUT')[0]?.['data'], agent.sent('TERMINAL_RESIZE')[0]?.['cols']],
    ['ls\r', 100],
  )
  attachment.acknowledge(0)
  await until('the agent may continue', () => agent.sent('TERMINAL_ACK').length > 0)
  const { record } = await there.live(terminal('s1'))
  t.is(record.cols, 100)
  await there.end('s1', 'ended by admin')
  t.is(agent.sent('TERMINAL_CLOSE').length, 1)
  t.like(await data.store.get('terminals', 's1'), { status: 'CLOSED', reason: 'ended by admin' })
  t.deepEqual([a.told, b.told], [[], ['attached', 'ended']], 'the owner of the session reports it')
})

test('a session of an agent linked to the same server is reached by a direct call', async (t) => {
  const { relay, start, link, openSession } = await openSites(t)
  const [a, b] = [await start('a'), await start('b')]
  await link(b, 1)
  await openSession(b)
  t.is<unknown, unknown>(await b.terminals.site('s1'), await relay.at(b.member))
  t.is<unknown, unknown>(await a.terminals.site('s1'), await relay.at(b.member))
})

test('P42 a session follows its agent to another server, and its client misses nothing', async (t) => {
  const { start, link, openSession } = await openSites(t)
  const [a, b] = [await start('a'), await start('b')]
  const former = await link(a, 1)
  await openSession(b)
  const first = notedClient()
  const attachment = (await b.terminals.site('s1')).attach('s1', first.client, attach)
  await former.output(0, 'one ')
  attachment.acknowledge(0)
  await former.output(1, 'two ')

  const agent = await link(b, 1, [['s1', 2]])
  await until('the agent is asked to continue', () => agent.sent('TERMINAL_OPEN').length === 1)
  t.is(agent.sent('TERMINAL_OPEN')[0]?.['after'], 1)
  t.is(first.heard.at(-1), 'closed 1001 the session continues on another server')
  await agent.output(2, 'three')
  t.is(await a.terminals.site('s1'), await b.terminals.site('s1'))
  t.deepEqual([a.terminals.load().open, b.terminals.load().open], [0, 1])
  const second = notedClient()
  const back = (await a.terminals.site('s1')).attach('s1', second.client, { after: 0, watch: false })
  back.input('x', 'f2')
  t.deepEqual(second.heard, ['TERMINAL_ATTACHED', 'output 1 "two "', 'output 2 "three"'])
  await until('input goes over the new link', () => agent.sent('TERMINAL_INPUT').length === 1)
  t.deepEqual([former.sent('TERMINAL_CLOSE').length, agent.sent('TERMINAL_CLOSE').length], [0, 0])
})

test('P42 a session that moves between its lookup and the attachment is retried, not reported as gone', async (t) => {
  const { start, link, openSession } = await openSites(t)
  const [a, b] = [await start('a'), await start('b')]
  await link(a, 1)
  await openSession(a)
  const former = await b.terminals.site('s1')
  await former.expect('s1', null)
  const agent = await link(b, 1, [['s1', -1]])
  await until('it has moved', () => agent.sent('TERMINAL_OPEN').length === 1)
  t.throws(() => former.attach('s1', notedClient().client, attach), { code: 'unavailable' })
  const { client, heard } = notedClient()
  const there = await a.terminals.site('s1')
  await there.expect('s1', null)
  there.attach('s1', client, attach)
  t.deepEqual(heard, ['TERMINAL_ATTACHED'])
})

test('P42 a server that releases a session to another does not adopt it again on the way', async (t) => {
  const { data, start, link, openSession } = await openSites(t)
  const [a, b] = [await start('a'), await start('b')]
  await link(a, 1)
  await openSession(a)
  const former = await b.terminals.site('s1')
  const release = data.ownership.release.bind(data.ownership)
  const asked: Promise<unknown>[] = []
  data.ownership.release = async (...owned) => {
    data.ownership.release = release
    asked.push(t.throwsAsync(former.expect('s1', null), { code: 'unavailable' }))
    await Promise.all(asked)
    return release(...owned)
  }
  const agent = await link(b, 1, [['s1', -1]])
  await until('it has moved', () => agent.sent('TERMINAL_OPEN').length === 1)
  t.is(asked.length, 1)
  t.deepEqual([a.terminals.load().open, b.terminals.load().open], [0, 1])
})

test('P42 a session that its server releases while asked for it is not ended', async (t) => {
  const { relay, start, link, openSession } = await openSites(t)
  const [a, b] = [await start('a'), await start('b')]
  await link(a, 1)
  await openSession(a)
  const having = relay.having.bind(relay)
  relay.having = async (id) => {
    relay.having = having
    const site = await having(id)
    return site && { ...site, handOver: async () => null }
  }
  const agent = await link(b, 1, [['s1', -1]])
  await until('it continues', () => agent.sent('TERMINAL_OPEN').length === 1)
  t.deepEqual(agent.sent('TERMINAL_CLOSE'), [])
  t.deepEqual([a.terminals.load().open, b.terminals.load().open], [0, 1])
})

test('a session that ended elsewhere and has no owner keeps its recorded end', async (t) => {
  const { data, relay, start, link, openSession } = await openSites(t)
  const a = await start('a')
  await link(a, 1)
  await openSession(a)
  const record = await data.store.get('terminals', 's1')
  if (!record) throw new Error('it is open')
  const end = { status: 'CLOSED', reason: 'ended elsewhere', endedAt: record.startedAt } as const
  await data.store.transact((tx) => tx.put('terminals', { ...record, ...end }))
  await (await relay.at(a.member))?.end('s1', 'ended here')
  t.like(await data.store.get('terminals', 's1'), end)
})

test('P42 the agent keeps an exit code that arrives while an earlier change of its session is written', async (t) => {
  const { data, start, link, openSession } = await openSites(t)
  const a = await start('a')
  const agent = await link(a, 1)
  await openSession(a)
  const attachment = (await a.terminals.site('s1')).attach('s1', notedClient().client, attach)
  const transact = data.store.transact.bind(data.store)
  const confirmed: number[] = []
  data.store.transact = async (...call) => {
    confirmed.push(agent.sent('TERMINAL_CLOSE').length)
    const done = await transact(...call)
    if (confirmed.length === 1)
      await a.terminals.closed(agent.link, 'f', { sessionId: 's1', exitCode: 9, signal: null, reason: null })
    return done
  }
  attachment.resize(100, 40)
  await until('it is confirmed', () => agent.sent('TERMINAL_CLOSE').length === 1)
  t.true(confirmed.length > 1)
  t.deepEqual([...new Set(confirmed)], [0], 'before the last write, too')
  t.like(await data.store.get('terminals', 's1'), { status: 'CLOSED', exitCode: 9, cols: 100 })
})

test('P42 a server that has lost a session to another does not confirm its exit code', async (t) => {
  const { data, relay, start, link, openSession } = await openSites(t)
  const [a, b] = [await start('a'), await start('b')]
  const agent = await link(a, 1)
  await openSession(a)
  await data.ownership.release(a.member, ['s1'])
  t.deepEqual(await data.ownership.claim(b.member, ['s1']), ['s1'])
  await t.throwsAsync(async () => (await relay.at(a.member))?.expect('s1', null), { code: 'unavailable' })
  await a.terminals.closed(agent.link, 'f', { sessionId: 's1', exitCode: 9, signal: null, reason: null })
  t.deepEqual(agent.sent('TERMINAL_CLOSE'), [])
})

test('an agent does not adopt a session of another host', async (t) => {
  const { start, link, openSession } = await openSites(t)
  const [a, b] = [await start('a'), await start('b')]
  await link(a, 1)
  await openSession(a)
  const other = await link(b, 2, [['s1', 0]])
  await until('the agent is asked to end it', () => other.sent('TERMINAL_CLOSE').length === 1)
  t.deepEqual([a.terminals.load().open, b.terminals.load().open], [1, 0])
})

test('a server that starts leaves the sessions of other servers alone', async (t) => {
  const { start, link, openSession } = await openSites(t)
  const b = await start('b')
  await link(b, 1)
  await openSession(b)
  const a = await start('a')
  t.deepEqual([a.terminals.load().open, b.terminals.load().open], [0, 1])
  await b.terminals.stop()
  const again = await start('b')
  t.is(again.terminals.load().open, 1, 'and adopts its own')
})

test('P42 another server delivers the rest and the exit code of an ended session whose server died', async (t) => {
  const { data, start, link, openSession } = await openSites(t)
  const [a, b] = [await start('a'), await start('b')]
  const agent = await link(b, 1)
  await openSession(b)
  const first = notedClient()
  const attachment = (await b.terminals.site('s1')).attach('s1', first.client, attach)
  await agent.output(0, 'one ')
  attachment.acknowledge(0)
  attachment.gone()
  await agent.output(1, 'two')
  await b.terminals.closed(agent.link, 'f', { sessionId: 's1', exitCode: 5, signal: null, reason: null })
  await until(
    'its end is on disk',
    async () => (await data.store.get('terminals', 's1'))?.status === 'CLOSED',
  )
  await b.terminals.stop()

  const there = await a.terminals.site('s1')
  t.true(await there.isAttachable('s1'))
  const content = data.recordings.content.bind(data.recordings)
  data.recordings.content = () => {
    data.recordings.content = content
    throw new RsmError('unavailable', 'the store is unreachable')
  }
  await t.throwsAsync(there.expect('s1', 0), { message: 'the store is unreachable' }, 'it may reconnect')
  await there.expect('s1', 0)
  const second = notedClient()
  const back = there.attach('s1', second.client, { after: 0, watch: false })
  back.acknowledge(1)
  t.deepEqual(second.heard.slice(0, 3), ['TERMINAL_ATTACHED', 'output 1 "two"', 'TERMINAL_CLOSED'])
  t.is(a.terminals.load().open, 0)
  back.gone()
  back.parted()
  t.false(await there.isAttachable('s1'), 'its client has received everything')
  await t.throwsAsync(there.expect('s1', 1), { message: 'Terminal session s1 has ended: exit code 5' })
})

test('P42 a session whose recording cannot be read during a store outage continues at the next attempt', async (t) => {
  const { data, start, link, openSession } = await openSites(t)
  const b = await start('b')
  const former = await link(b, 1)
  await openSession(b)
  await former.output(0, 'one')
  await b.terminals.stop()
  const reopen = data.recordings.reopen.bind(data.recordings)
  data.recordings.reopen = async () => {
    data.recordings.reopen = reopen
    throw new RsmError('unavailable', 'the store is unreachable')
  }
  const again = await start('b')
  t.is(again.terminals.load().open, 0, 'the first try failed')
  const { client, heard } = notedClient()
  const site = await again.terminals.site('s1')
  await site.expect('s1', null)
  site.attach('s1', client, attach)
  t.deepEqual(heard.slice(0, 2), ['TERMINAL_ATTACHED', 'output 0 "one"'])
  t.is((await data.store.get('terminals', 's1'))?.status, 'OPEN')
})

test('a session ended on request, or too long ago, can no longer be attached to', async (t) => {
  const { data, start, openSession, link } = await openSites(t)
  const [a, b] = [await start('a'), await start('b')]
  await link(b, 1)
  await openSession(b)
  const record = await data.store.get('terminals', 's1')
  if (!record) throw new Error('it is open')
  await b.terminals.stop()
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString()
  const closed = { status: 'CLOSED', exitCode: 0, signal: null, reason: null, endedAt: ago(5) } as const
  const isAttachable = async (end: Partial<typeof record>) => {
    await data.store.transact((tx) => tx.put('terminals', { ...record, ...closed, ...end }))
    return (await a.terminals.site('s1')).isAttachable('s1')
  }
  t.true(await isAttachable({}))
  t.false(await isAttachable({ endedAt: ago(62) }))
  t.false(await isAttachable({ exitCode: null, reason: 'ended by admin' }))
  t.false(await isAttachable({ recorded: false }))
})
