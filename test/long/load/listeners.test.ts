import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import test from 'ava'
import { readEvents } from '../../helpers/clients/events.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'

const listeners = 500
const hosts = 10
const rounds = 20
/** MB. Measured: 15 to 25, mostly for the connections. */
const mayGrow = 100

test('F15 500 listeners that never read use little memory and do not delay other clients', async (t) => {
  const server = await startServerProcess(t)
  const big = 'x'.repeat(250)
  const tags = { a: big, b: big, c: big }
  const ids: number[] = []
  for (let n = 0; n < hosts; n++)
    ids.push((await server.data('POST', '/api/hosts', { hostname: `web${n}`, ip: '192.0.2.1', tags })).id)
  const reader = await readEvents(t, server, '?type=host')
  await reader.next('ready')
  const before = await server.memory()
  const stuck: Socket[] = []
  t.teardown(() => {
    for (const socket of stuck) socket.destroy()
  })
  while (stuck.length < listeners) {
    const some = Array.from({ length: 50 }, () => connect(Number(new URL(server.url).port), '127.0.0.1'))
    stuck.push(...some)
    for (const socket of some)
      socket.write(`GET /api/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.token}\r\n\r\n`)
    // Response headers show that it listens; the test reads nothing after them.
    await Promise.all(some.map((socket) => once(socket, 'readable')))
  }
  for (let round = 1; round <= rounds; round++) {
    const changed = { tags: { round: `${round}` } }
    await Promise.all(ids.map((id) => server.data('PATCH', `/api/hosts/${id}`, changed)))
    await reader.next('host', ({ host }) => host.tags.round === `${round}`)
  }
  t.is((await server.data('GET', '/api/hosts')).totalElements, hosts)
  const grown = (await server.memory()) - before
  t.log(`${grown.toFixed(1)} MB for ${listeners} listeners`)
  t.true(grown < mayGrow, `${grown} MB`)
})
