import test, { type ExecutionContext } from 'ava'
import {
  joinSelector,
  resolveHosts,
  resolveTarget,
  splitUnion,
  type TargetOptions,
} from '../../../src/cli/names/targets.ts'
import { confirmTarget } from '../../../src/cli/task/consent.ts'
import { openClient } from '../../../src/client/client.ts'
import { RsmError } from '../../../src/core/errors.ts'
import { expandNodeset } from '../../../src/core/selector/nodeset.ts'
import { envelope, hostNamed, pageOf, startFakeServer } from '../../fixtures/fake-server.ts'

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
  ['--all beside another is refused', { all: true, hosts: ['a'] }, /--all already means every host/],
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

/** Answers the names of a selector that are `fleet-of-long-names-N`, and notes how long each question was. */
async function startFleet(t: ExecutionContext) {
  const lengths: number[] = []
  const server = await startFakeServer(t, {
    'GET /api/hosts': ({ query }, response) => {
      const selector = query.get('selector') ?? ''
      lengths.push(encodeURIComponent(selector).length)
      const hosts = expandNodeset(selector.replace('@tag:role:web', 'fleet-of-long-names-[1-3]'))
      const unknown = hosts.filter((name) => !name.startsWith('fleet-'))
      if (unknown.length === 0)
        return pageOf(hosts.map((name) => hostNamed(Number(/\d+$/.exec(name)?.[0]), name)))
      const errors = unknown.map((name) => ({ field: 'selector', message: `no such host: ${name}` }))
      envelope(response, 400, { errors })
      return undefined
    },
  })
  return { client: await openClient({ url: server.url, token: 'x' }), lengths }
}

const longNames = (count: number) => Array.from({ length: count }, (_, at) => `fleet-of-long-names-${at + 1}`)
const idsOf = (hosts: readonly { id: number }[]) => hosts.map(({ id }) => id)

test('more names than one question holds are asked for in several, each host once; an unknown one is told', async (t) => {
  const { client, lengths } = await startFleet(t)
  const names = longNames(900)
  const ids = names.map((_, at) => at + 1)
  t.deepEqual(idsOf(await resolveHosts(client, { ...none, hosts: [...names, ...names] })), ids)
  t.true(lengths.length > 5)
  const narrowed = { ...none, hosts: names, tags: ['role=web'], exclude: [names[1] ?? ''] }
  t.deepEqual(idsOf(await resolveHosts(client, narrowed)), [1, 3])
  // One node set whose gaps make it long.
  const odd = ids.filter((id) => id % 2 === 1)
  const folded = { ...none, hosts: [`fleet-of-long-names-[${odd.join(',')}]`] }
  t.deepEqual(idsOf(await resolveHosts(client, { ...none, ...folded })), odd)
  t.true(Math.max(...lengths) <= 4000, `${Math.max(...lengths)}`)
  const error = await t.throwsAsync(resolveHosts(client, { ...none, hosts: [...names, 'web9'] }), {
    instanceOf: RsmError,
    message: 'no such host: web9',
  })
  t.is(error.code, 'not_found')
})

test('a target is sent as a selector while a server takes one so long, then by its ids', async (t) => {
  const { client, lengths } = await startFleet(t)
  const hosts = longNames(2600)
  t.deepEqual(await resolveTarget(client, { ...none, hosts }), { selector: hosts.join(',') })
  t.deepEqual(lengths, [])
  const more = longNames(3000)
  t.deepEqual(await resolveTarget(client, { ...none, hosts: more }), { hostIds: more.map((_, at) => at + 1) })
  t.true(Math.max(...lengths) <= 4000)
})

test('whether a person is to be asked is found out for a long selector too', async (t) => {
  const { client, lengths } = await startFleet(t)
  const few = longNames(20)
  const hosts = Array.from({ length: 40 }, () => few).flat()
  const intent = { what: 'Run', server: 'x' }
  t.deepEqual(await confirmTarget(client, { ...none, hosts }, intent), { selector: hosts.join(',') })
  t.true(Math.max(...lengths) <= 4000)
})
