import { postgresTest as test } from '../../helpers/servers/postgres.ts'
import { openSharedSites } from '../../helpers/servers/shared-sites.ts'
import { terminal } from '../../helpers/servers/store-records.ts'
import { notedClient } from '../../helpers/terminals/noted-client.ts'
import { until } from '../../helpers/until.ts'

const attach = { after: null, watch: false }

test('a client of one server reaches the agent that is linked to another', async (t) => {
  const { data, start, link, openSession } = await openSharedSites(t)
  const [a, b] = [await start('a'), await start('b')]
  const agent = await link(b, 1)
  await openSession(b)
  const there = await a.terminals.site('s1')
  await there.expect('s1', null)
  await t.throwsAsync(there.expect('s1', 99), { code: 'invalid', message: /after is 99/ })
  const { client, heard } = notedClient()
  const attachment = there.attach('s1', client, attach)
  attachment.input('ls\r', 'f1')
  attachment.resize(100, 40)
  await until('the agent has the input', () => agent.sent('TERMINAL_RESIZE').length === 1)
  t.is(agent.sent('TERMINAL_INPUT')[0]?.['data'], 'ls\r')
  await agent.output(0, 'web1$ ')
  await until('the output is shown', () => heard.length === 2)
  t.deepEqual(heard, ['TERMINAL_ATTACHED', 'output 0 "web1$ "'])
  attachment.acknowledge(0)
  await until('the output is acknowledged', () => agent.sent('TERMINAL_ACK').length > 0)
  t.is((await there.live(terminal('s1'))).record.cols, 100)
  await there.end('s1', 'ended by admin')
  t.like(await data.store.get('terminals', 's1'), { status: 'CLOSED', reason: 'ended by admin' })
  await until('the client is notified', () => heard.at(-1)?.startsWith('closed 1000') === true)
  t.deepEqual([a.told, b.told], [[], ['attached', 'ended']], 'the server of the session reports its events')
})

test('P42 a session moves with its agent to another server, and its client misses nothing', async (t) => {
  const { start, link, openSession } = await openSharedSites(t)
  const [a, b] = [await start('a'), await start('b')]
  const former = await link(a, 1)
  await openSession(a)
  const first = notedClient()
  const attachment = (await b.terminals.site('s1')).attach('s1', first.client, attach)
  await former.output(0, 'one ')
  await until('the output is shown', () => first.heard.length === 2)
  attachment.acknowledge(0)
  await former.output(1, 'two ')

  const agent = await link(b, 1, [['s1', 2]])
  await until('the agent is asked to continue', () => agent.sent('TERMINAL_OPEN').length === 1)
  t.is(agent.sent('TERMINAL_OPEN')[0]?.['after'], 1)
  await until('the client is notified', () => first.heard.at(-1)?.startsWith('closed') === true)
  t.is(first.heard.at(-1), 'closed 1001 the session continues on another server')
  await agent.output(2, 'three')
  t.deepEqual([a.terminals.load().open, b.terminals.load().open], [0, 1])
  const second = notedClient()
  const back = (await a.terminals.site('s1')).attach('s1', second.client, { after: 0, watch: false })
  back.input('x', 'f2')
  await until('all output is shown', () => second.heard.length === 3)
  t.deepEqual(second.heard, ['TERMINAL_ATTACHED', 'output 1 "two "', 'output 2 "three"'])
  await until('input goes over the new link', () => agent.sent('TERMINAL_INPUT').length === 1)
  t.deepEqual([former.sent('TERMINAL_CLOSE').length, agent.sent('TERMINAL_CLOSE').length], [0, 0])
})

test('P42 a session of a lost server continues where its agent links, and the lost server reports nothing about it', async (t) => {
  const { data, start, link, openSession, clocks, lose } = await openSharedSites(t)
  const [a, b, c] = [await start('a'), await start('b'), await start('c')]
  const former = await link(a, 1)
  await openSession(a)
  const first = notedClient()
  const attachment = (await b.terminals.site('s1')).attach('s1', first.client, attach)
  await former.output(0, 'one ')
  await until('the output is shown', () => first.heard.length === 2)
  attachment.acknowledge(0)
  await lose(a)
  await until('the client is notified', () => first.heard.at(-1)?.startsWith('closed 1001') === true)

  const agent = await link(c, 1, [['s1', 0]])
  await until('the agent is asked to continue', () => agent.sent('TERMINAL_OPEN').length === 1)
  t.is(agent.sent('TERMINAL_OPEN')[0]?.['after'], 0)
  await agent.output(1, 'two')
  const second = notedClient()
  const there = await b.terminals.site('s1')
  await there.expect('s1', 0)
  there.attach('s1', second.client, { after: 0, watch: false })
  await until('all output is shown', () => second.heard.length === 2)
  t.deepEqual(second.heard, ['TERMINAL_ATTACHED', 'output 1 "two"'])

  Object.assign(clocks.get('a') ?? {}, { ahead: 61_000 })
  await until('the lost server drops the session', () => a.terminals.load().open === 0)
  for (let n = 0; n < 10; n++) await data.store.refresh()
  t.like(await data.store.get('terminals', 's1'), { status: 'OPEN' })
  t.deepEqual([a.told, c.told], [['attached'], ['attached']])
  t.deepEqual([former.sent('TERMINAL_CLOSE').length, agent.sent('TERMINAL_CLOSE').length], [0, 0])
})

test('P42 a client that reconnects before the agent makes its server adopt the session', async (t) => {
  const { data, start, link, openSession, lose } = await openSharedSites(t)
  const [a, b] = [await start('a'), await start('b')]
  const former = await link(a, 1)
  await openSession(a)
  const before = await b.terminals.site('s1')
  const recorded = async () => (await before.live(terminal('s1'))).recordingBytes
  const empty = await recorded()
  await former.output(0, 'one ')
  await until('the output is recorded', async () => (await recorded()) > empty)
  await lose(a)
  await t.throwsAsync(before.expect('s1', 0), { code: 'unavailable' })

  const there = await b.terminals.site('s1')
  t.true(await there.isAttachable('s1'))
  await there.expect('s1', 0)
  const { client, heard } = notedClient()
  there.attach('s1', client, { after: null, watch: false })
  t.deepEqual(heard, ['TERMINAL_ATTACHED', 'output 0 "one "'])
  const agent = await link(b, 1, [['s1', 1]])
  await until('the agent is asked to continue', async () => agent.sent('TERMINAL_OPEN').length > 0)
  t.is(agent.sent('TERMINAL_OPEN')[0]?.['after'], 0)
  await there.end('s1', 'ended by admin')
  t.like(await data.store.get('terminals', 's1'), { status: 'CLOSED', reason: 'ended by admin' })
  await t.throwsAsync(there.expect('s1', 0), { code: 'gone' })
})

test('a session of a living server that cannot be reached is unavailable, not gone', async (t) => {
  const { start, link, openSession, lose, data } = await openSharedSites(t)
  const [a, b] = [await start('a'), await start('b')]
  await link(a, 1)
  await openSession(a)
  const again = await data.ownership.join('again')
  await lose(a)
  await data.ownership.claim(again, ['s1'])
  const there = await b.terminals.site('s1')
  await t.throwsAsync(there.expect('s1', null), { code: 'unavailable' })
  await t.throwsAsync(there.end('s1', 'x'), { code: 'unavailable' })
})
