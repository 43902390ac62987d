import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import {
  findCluster,
  findEnrollment,
  findHost,
  findScript,
  findToken,
  findUser,
  hostsByName,
} from '../../../src/cli/names/names.ts'
import { openClient } from '../../../src/client/client.ts'
import { startInjectedServer, type TestServer } from '../../helpers/servers/server.ts'

/** Every list with names: how to create a record with a name, and which field has the name. */
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
  test(`A16 GET ${path}?name= finds exactly that name, ignoring case`, async (t) => {
    const server = await startInjectedServer(t)
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

test('A16 a lookup by name is one call that reads one record, however many exist', async (t) => {
  const server = await startInjectedServer(t)
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
  t.is((await findScript({ scripts }, String(id))).name, 'db1', 'an id works as well')
  asked.length = 0
  await t.throwsAsync(findScript({ scripts: noted(scripts) }, 'bd1'), {
    message: /no such script: bd1 \(did you mean db1\?\)/,
  })
  t.deepEqual(asked.slice(1), [{ page: 0, size: 100 }], 'for an unknown name one page is read')
})

/** A connection to a server: returns a client over it, and the traffic since the last call of `gone`. */
async function overWire(t: ExecutionContext, server: TestServer) {
  let sent = ''
  let bytes = 0
  const relay = createServer((socket) => {
    const upstream = connect(Number(new URL(server.url).port), '127.0.0.1')
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
    socket.on('data', (data) => {
      sent += data.toString('latin1')
      upstream.write(data)
    })
    upstream.on('data', (data) => {
      bytes += data.length
      socket.write(data)
    })
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  t.teardown(() => relay.close())
  const url = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`
  return {
    client: await openClient({ url, token: server.token }),
    gone: () => {
      const requests = sent.match(/ HTTP\/1\.1\r\n/g)?.length ?? 0
      const all = { requests, bytes }
      sent = ''
      bytes = 0
      return all
    },
  }
}

test('A16 a lookup by name costs one request and one record, whatever else is stored', async (t) => {
  const server = await startInjectedServer(t)
  await filled(server)
  const content = `#!/bin/bash\n${'# as long as scripts are\n'.repeat(800)}`
  for (let at = 0; at < 30; at++)
    await server.data('POST', '/api/scripts', { name: `s${at}`, type: 'BASH', content })
  const { client, gone } = await overWire(t, server)
  gone()
  const lookUps = [
    () => findScript(client, 'S7'),
    () => findScript(client, '7'),
    () => findCluster(client, 'web1'),
    () => findUser(client, 'web1'),
    () => findHost(client, 'web1'),
  ]
  const costs: { requests: number; bytes: number }[] = []
  for (const lookUp of lookUps) {
    t.truthy(await lookUp())
    costs.push(gone())
  }
  // An id is looked up as a name first.
  t.deepEqual(
    costs.map(({ requests }) => requests),
    [1, 2, 1, 1, 1],
  )
  for (const { bytes } of costs) t.true(bytes < 1.5 * content.length, `${bytes} bytes`)
})

test('the first hosts by name are one page of the server, whose default order stays by id', async (t) => {
  const server = await startInjectedServer(t)
  const names = Array.from({ length: 60 }, (_, index) => `n${60 - index}`)
  for (const hostname of names) await server.data('POST', '/api/hosts', { hostname, ip: '10.0.0.1' })
  const { client, gone } = await overWire(t, server)
  const shown = async (query: string) =>
    (await server.data('GET', `/api/hosts?${query}`)).content.map(
      ({ hostname }: { hostname: string }) => hostname,
    )
  t.deepEqual(await shown('size=3'), ['n60', 'n59', 'n58'])
  t.deepEqual(await shown('size=3&sort=hostname'), ['n1', 'n2', 'n3'])
  t.deepEqual(await shown('size=2&page=4&sort=hostname'), ['n9', 'n10'])
  t.deepEqual(await shown('search=n1&size=3&sort=hostname'), ['n1', 'n10', 'n11'])
  t.deepEqual(await shown('selector=n[9-11]&sort=hostname'), ['n9', 'n10', 'n11'])
  t.deepEqual(await shown('status=OFFLINE&size=2&sort=hostname'), ['n1', 'n2'])
  t.is((await server.api('GET', '/api/hosts?sort=ip')).status, 400)
  gone()
  const all = await hostsByName(client, {}, [])
  const whole = gone()
  const page = await hostsByName(client, {}, [], 5)
  const { requests, bytes } = gone()
  t.deepEqual(page.content, all.content.slice(0, 5))
  t.deepEqual(
    page.content.map(({ hostname }) => hostname),
    ['n1', 'n2', 'n3', 'n4', 'n5'],
  )
  t.is(page.totalElements, 60)
  t.is(requests, 1)
  t.true(bytes < whole.bytes / 6, `${bytes} of ${whole.bytes} bytes`)
})
