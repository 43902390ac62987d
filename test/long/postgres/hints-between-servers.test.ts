import { hintingServers } from '../../helpers/servers/hinting-servers.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { until } from '../../helpers/until.ts'

test('hints of one server reach the others, and itself once and at once', async (t) => {
  const { server } = await hintingServers(t, sharedPostgres())
  const servers = [await server('a'), await server('b'), await server('c')] as const
  const heard = servers.map(({ hints }) => {
    const its: string[] = []
    const note = (text: string) => void its.push(text)
    hints.subscribe('task', 't1', ({ hostId, change }) => note(`task ${hostId} ${change}`))
    hints.subscribe('output', null, ({ id }) => note(`output ${id}`))
    hints.subscribe('host', null, ({ id, change }) => note(`host ${id} ${change}`))
    hints.subscribe('cluster', 5, ({ change }) => note(`cluster ${change}`))
    hints.subscribe('lane', null, ({ id }) => note(`lane ${id}`))
    hints.subscribe('link', null, ({ id, epoch }) => note(`link ${id} ${epoch}`))
    hints.subscribe('server', null, ({ id }) => note(`server ${id}`))
    hints.subscribe('tokenEnded', 9, () => note('tokenEnded'))
    hints.subscribe('agentRevoked', 'agent ä/1', () => note('agentRevoked'))
    return its
  })
  const { hints } = servers[0]
  hints.publish('task', { id: 't1', hostId: null, change: 'created' })
  for (const hostId of [3, 2, 3]) hints.publish('task', { id: 't1', hostId, change: 'updated' })
  hints.publish('output', { id: 't1' })
  for (const id of [300, 7]) hints.publish('host', { id, change: 'updated' })
  hints.publish('host', { id: 7, change: 'removed' })
  hints.publish('cluster', { id: 5, change: 'created' })
  hints.publish('lane', { id: 1 })
  for (const epoch of [40, 39]) hints.publish('link', { id: 1, epoch })
  hints.publish('server', { id: 'a' })
  hints.publish('tokenEnded', { id: 9 })
  hints.publish('agentRevoked', { id: 'agent ä/1' })
  t.is(heard[0]?.length, 15, 'all hints at once')
  const expected = [...new Set(heard[0])].filter((line) => line !== 'link 1 39').toSorted()
  for (const at of [1, 2])
    await until('all hints arrive', () => expected.every((line) => heard[at]?.includes(line)))
  hints.publish('server', { id: 'last' })
  for (const at of [1, 2]) await until('the last hint arrives', () => heard[at]?.at(-1) === 'server last')
  for (const at of [1, 2])
    t.deepEqual(heard[at]?.toSorted(), [...expected, 'server last'].toSorted(), 'each arrives once')
  t.is(heard[0]?.length, 16)
})

test('many hints are sent in few notifications of less than 8 KB each', async (t) => {
  const { server, store } = await hintingServers(t, sharedPostgres())
  const [a, b] = [await server('a'), await server('b')]
  const heard = new Set<number>()
  b.hints.subscribe('host', null, ({ id }) => heard.add(id))
  const { database } = await store.server('listener')
  const listener = await database.connect()
  t.teardown(() => listener.end())
  const payloads: string[] = []
  listener.on('notification', ({ payload = '' }) => payloads.push(payload))
  await listener.query('listen rsm')
  for (let id = 1; id <= 20_000; id++) a.hints.publish('host', { id: 5 * id, change: 'updated' })
  await until('all hints arrive', () => heard.size === 20_000)
  const hints = payloads.filter((payload) => payload.includes('host '))
  t.true(hints.length < 10, `${hints.length} notifications`)
  t.true(hints.every((payload) => Buffer.byteLength(payload) < 8000))
})

test('hints of records wait until copies are refreshed; a failed refresh holds none back', async (t) => {
  const { server } = await hintingServers(t, sharedPostgres())
  const [a, b] = [await server('a'), await server('b')]
  const seen: string[] = []
  b.hints.refreshFirst(async () => {
    seen.push('look begins')
    await until('output does not wait for the refresh', () => seen.includes('output'))
    seen.push('look ends')
    throw new Error('the store is unavailable')
  })
  b.hints.subscribe('host', null, ({ id }) => seen.push(`host ${id}`))
  b.hints.subscribe('output', null, () => seen.push('output'))
  a.hints.publish('host', { id: 1, change: 'updated' })
  await until('the refresh begins', () => seen.length > 0)
  a.hints.publish('output', { id: 't1' })
  await until('both hints arrive', () => seen.length === 4)
  t.is(seen.indexOf('host 1'), seen.indexOf('look ends') + 1)
})

test('an unknown message of a newer server makes a server refresh everything', async (t) => {
  const { server, store } = await hintingServers(t, sharedPostgres())
  const { hints, channel } = await server('a')
  let missed = 0
  t.teardown(hints.missed(() => missed++))
  channel.hear('json', (text) => JSON.parse(text))
  const say = (payload: string) => store.ask('api', `select pg_notify('rsm', $1)`, [payload])
  let expected = 0
  for (const payload of [
    '2 other\nhost updated AQ==',
    '1 other\nplanet 7',
    '1 other\nhost moved AQ==',
    'x',
  ]) {
    await say(payload)
    expected++
    await until(payload, () => missed === expected)
  }
  const heard: number[] = []
  hints.subscribe('host', null, ({ id }) => heard.push(id))
  await say('1 other\nhost updated AQ==')
  await until('the hint arrives', () => heard.length === 1)
  t.is(missed, expected)
})
