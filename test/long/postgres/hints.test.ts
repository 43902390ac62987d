import { setTimeout as delay } from 'node:timers/promises'
import { hintingServers } from '../../helpers/servers/hinting-servers.ts'
import {
  atExit,
  sharedPostgres,
  startPostgres,
  postgresTest as test,
} from '../../helpers/servers/postgres.ts'
import { until } from '../../helpers/until.ts'

test('F28 a connection that went silent is noticed and replaced', async (t) => {
  const { server } = await hintingServers(t, sharedPostgres())
  const [a, b] = [await server('a'), await server('b')]
  const heard: number[] = []
  let missed = 0
  b.hints.subscribe('lane', null, ({ id }) => heard.push(id))
  t.teardown(b.hints.missed(() => missed++))
  await until('the server hears its own mark', () => b.channel.hearing().heard !== null)
  t.true((b.channel.hearing().heard?.lag ?? 1000) < 1000)
  b.network.freeze({ standing: true })
  a.hints.publish('lane', { id: 1 })
  const began = performance.now()
  await until('the server listens again', () => missed > 0)
  t.true(performance.now() - began < 9_500, `${performance.now() - began} ms`)
  a.hints.publish('lane', { id: 2 })
  await until('hints arrive again', () => heard.includes(2))
  t.deepEqual(heard, [2], 'hints sent meanwhile are lost')
})

test('F28 hints that could not be sent become one message afterwards: other servers refresh everything', async (t) => {
  const { server } = await hintingServers(t, sharedPostgres())
  const [a, b] = [await server('a'), await server('b')]
  let missed = 0
  t.teardown(b.hints.missed(() => missed++))
  a.network.freeze()
  a.network.cut()
  a.hints.publish('lane', { id: 1 })
  await delay(300)
  t.is(missed, 0)
  a.network.thaw()
  a.network.cut()
  await until('the other server is notified', () => missed > 0)
})

test('after a restart of PostgreSQL a server hears the others again and refreshes everything', async (t) => {
  const postgres = startPostgres(atExit)
  const { server } = await hintingServers(t, postgres)
  const [a, b] = [await server('a'), await server('b')]
  const heard: number[] = []
  let missed = 0
  t.teardown(b.hints.missed(() => missed++))
  b.hints.subscribe('lane', null, ({ id }) => heard.push(id))
  const own = await postgres
  own.stop('immediate')
  own.start()
  await until('the server listens', () => missed > 0)
  await until('hints arrive again', async () => {
    a.hints.publish('lane', { id: 1 })
    await delay(50)
    return heard.includes(1)
  })
  t.pass()
})
