import test from 'ava'
import { openClient } from '../../src/client/client.ts'
import { joinSelector, resolveTarget, splitUnion, type TargetOptions } from '../../src/client/targets.ts'
import { RsmError } from '../../src/core/errors.ts'
import { hostNamed, pageOf, startFakeServer } from '../fixtures/fake-server.ts'

const none: TargetOptions = { hosts: [], clusters: [], all: false, tags: [], exclude: [] }

const joined: [string, Partial<TargetOptions>, string | undefined][] = [
  ['one name', { hosts: ['web1'] }, 'web1'],
  ['several are a union', { hosts: ['web[1-3]', 'db1'], clusters: ['prod'] }, 'web[1-3],db1,@prod'],
  ['every host', { all: true }, '@*'],
  ['tags alone narrow every host', { tags: ['role=web', 'zone=a'] }, '@tag:role:web&@tag:zone:a'],
  ['tags narrow the union', { hosts: ['a', 'b'], tags: ['role=web'] }, 'a,b&@tag:role:web'],
  ['all with a tag', { all: true, tags: ['role=web'] }, '@*&@tag:role:web'],
  [
    'each excluded part is taken away',
    { hosts: ['web[1-9]'], exclude: ['web[2,4]', 'web5,web6'] },
    'web[1-9]!web[2,4]!web5!web6',
  ],
  ['the one part with operators goes first', { hosts: ['a', 'b!c'] }, 'b!c,a'],
  ['two parts with operators cannot be joined', { hosts: ['a&b', 'c!d'] }, undefined],
  ['an excluded operator cannot be joined', { hosts: ['a'], exclude: ['b&c'] }, undefined],
  ['a cluster with a space cannot be joined', { clusters: ['my web'] }, undefined],
  ['a tag value with a comma cannot be joined', { tags: ['note=a,b'] }, undefined],
]
for (const [title, options, expected] of joined)
  test(`targets: ${title}`, (t) => {
    t.is(joinSelector({ ...none, ...options }), expected)
  })

const refused: [string, Partial<TargetOptions>, RegExp][] = [
  ['no target is never every host', {}, /no target/],
  ['only an exclusion is no target', { exclude: ['a'] }, /no target/],
  ['--all beside another is refused', { all: true, hosts: ['a'] }, /--all stands alone/],
  ['a tag needs a value', { tags: ['role'] }, /KEY=VALUE/],
]
for (const [title, options, message] of refused)
  test(`targets: ${title}`, (t) => {
    const error = t.throws(() => joinSelector({ ...none, ...options }), { instanceOf: RsmError, message })
    t.is(error.code, 'usage')
  })

test('a union is split outside of brackets only', (t) => {
  t.deepEqual(splitUnion('a[1,3],b, c'), ['a[1,3]', 'b', 'c'])
})

test('a cluster whose name no selector holds is sent by its id', async (t) => {
  const server = await startFakeServer(t, {
    'GET /api/clusters': () => pageOf([{ id: 7, name: 'My Web', hostIds: [2, 1] }]),
  })
  const client = await openClient({ url: server.url, token: 'x' })
  t.deepEqual(await resolveTarget(client, { ...none, clusters: ['my web'] }), { clusterId: 7 })
})

test('parts that cannot be joined are resolved one by one, in natural order of names', async (t) => {
  const hosts = [hostNamed(1, 'web10'), hostNamed(2, 'web2'), hostNamed(3, 'db1')]
  const answers: Record<string, number[]> = { 'web*&@x': [1], 'db1!y': [3], 'z&q': [3] }
  const server = await startFakeServer(t, {
    'GET /api/clusters': () => pageOf([{ id: 7, name: 'My Web', hostIds: [2] }]),
    'GET /api/hosts': ({ query }) => {
      const ids = answers[query.get('selector') ?? ''] ?? [1, 2, 3]
      return pageOf(hosts.filter((host) => ids.includes(host.id)))
    },
  })
  const client = await openClient({ url: server.url, token: 'x' })
  const target = { ...none, hosts: ['web*&@x', 'db1!y'], clusters: ['My Web'], exclude: ['z&q'] }
  t.deepEqual(await resolveTarget(client, target), { hostIds: [2, 1] })
})
