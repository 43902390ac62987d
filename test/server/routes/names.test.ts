import test from 'ava'
import { openClient } from '../../../src/client/client.ts'
import { findCluster, findEnrollment, findScript, findToken, findUser } from '../../../src/ui/names/names.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'

/** Every list with names: how a record of that name is made, and where lists show it. */
const lists: Record<string, { make: (name: string) => object; field: string }> = {
  '/api/hosts': { make: (hostname) => ({ hostname, ip: '10.0.0.1' }), field: 'hostname' },
  '/api/scripts': { make: (name) => ({ name, type: 'BASH', content: 'true' }), field: 'name' },
  '/api/clusters': { make: (name) => ({ name }), field: 'name' },
  '/api/users': {
    make: (username) => ({ username, password: 'long enough', role: 'VIEWER' }),
    field: 'username',
  },
  '/api/tokens': { make: (name) => ({ name }), field: 'name' },
  '/api/enrollment-tokens': { make: (name) => ({ name }), field: 'name' },
}

async function filled(server: TestServer): Promise<void> {
  for (const [path, { make }] of Object.entries(lists))
    for (const name of ['Web1', 'web10', 'xweb1', 'db1']) await server.data('POST', path, make(name))
}

for (const [path, { make, field }] of Object.entries(lists))
  test(`A16 GET ${path}?name= finds exactly that name, without regard to case, and nothing else`, async (t) => {
    const server = await startTestServer(t)
    await filled(server)
    const named = async (query: string) => {
      const page = await server.data('GET', `${path}?${query}`)
      t.is(page.totalElements, page.content.length)
      return page.content.map((each: Record<string, string>) => each[field])
    }
    t.deepEqual(await named('name=wEB1'), ['Web1'])
    t.deepEqual(await named('name=web'), [])
    t.deepEqual(await named('name=web1&size=1&page=0'), ['Web1'])
    t.deepEqual((await server.data('GET', `${path}?name=web1&size=1&page=1`)).content, [])
    if (!['/api/tokens', '/api/enrollment-tokens'].includes(path)) {
      t.deepEqual(await named('name=web1&search=eb'), ['Web1'], 'narrowed further')
      t.deepEqual(await named('name=web1&search=db'), [])
    } else {
      await server.data('POST', path, make('web1'))
      t.deepEqual(await named('name=WEB1'), ['Web1', 'web1'], 'names of these need not be unique')
    }
    for (const bad of ['name=', `name=${'a'.repeat(254)}`, 'names=web1'])
      t.is((await server.api('GET', `${path}?${bad}`)).status, 400, bad)
  })

test('A16 a name is looked up by one call that reads one record, however many there are', async (t) => {
  const server = await startTestServer(t)
  await filled(server)
  const client = await openClient({ url: server.url, token: server.token })
  const asked: unknown[] = []
  const noted = <S extends { list: (query: never) => Promise<unknown> }>(service: S): S => ({
    ...service,
    list: (query: never) => {
      asked.push(query)
      return service.list(query)
    },
  })
  const { scripts, clusters, users, tokens, enrollments } = client
  t.is((await findScript({ scripts: noted(scripts) }, 'web1')).name, 'Web1')
  t.is((await findCluster({ clusters: noted(clusters) }, 'WEB1')).name, 'Web1')
  t.is((await findUser({ users: noted(users) }, 'web1')).username, 'Web1')
  t.is((await findToken({ tokens: noted(tokens) }, 'web1')).name, 'Web1')
  t.is((await findEnrollment({ enrollments: noted(enrollments) }, 'web1')).name, 'Web1')
  t.is(asked.length, 5)
  t.true(asked.every((query) => Object.hasOwn(query as object, 'name')))
  const { id } = await findScript({ scripts }, 'db1')
  t.is((await findScript({ scripts }, String(id))).name, 'db1', 'an id does as well')
  await t.throwsAsync(findScript({ scripts }, 'bd1'), {
    message: /no such script: bd1 \(did you mean db1\?\)/,
  })
})
