import test from 'ava'
import { startTestServer } from '../../helpers/servers/server.ts'

const hosts = 1000
/** Examines 200,000 hosts, in ten slices. */
const bomb = `${'@*^'.repeat(199)}@*`

test('A08 the server answers other requests while an expensive selector is resolved, for any operation', async (t) => {
  const server = await startTestServer(t)
  for (let from = 0; from < hosts; from += 100)
    await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        server.data('POST', '/api/hosts', { hostname: `web${from + n}`, ip: '10.0.0.1' }),
      ),
    )
  /** Asserts that at least two other requests, one after the other, are answered during this one. */
  async function answeredDuring(asked: Promise<{ status: number }>, status: number, what: string) {
    let done = false
    const answer = asked.finally(() => {
      done = true
    })
    let answered = 0
    for (;;) {
      await server.api('GET', '/api/health')
      if (done) break
      answered++
    }
    t.is((await answer).status, status, what)
    t.true(answered >= 2, `${what}: ${answered} answered in the meantime`)
  }
  const query = `selector=${encodeURIComponent(bomb)}`
  await answeredDuring(server.api('GET', `/api/hosts?${query}`), 200, 'a list')
  const task = { script: { content: 'true' }, target: { selector: bomb } }
  await answeredDuring(server.api('POST', '/api/tasks', task), 400, 'a task')
  const cluster = { name: 'bomb', selector: bomb }
  await answeredDuring(server.api('POST', '/api/clusters', cluster), 201, 'a new cluster')
  const tags = { changed: 'yes' }
  await answeredDuring(server.api('PATCH', '/api/hosts/1', { tags }), 200, 'a host with its clusters')
  const several = Array.from({ length: 8 }, () => server.api('GET', `/api/hosts?${query}`))
  await answeredDuring(
    Promise.all(several).then(([first]) => first ?? { status: 0 }),
    200,
    'eight lists at once',
  )
})
