import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { createDirectory, type SelectorHost } from '../../../src/core/selector/directory.ts'
import { expandNodeset, foldNodeset } from '../../../src/core/selector/nodeset.ts'
import { parseSelector } from '../../../src/core/selector/parse.ts'
import { resolveInSlices, stepsPerSlice } from '../../../src/core/selector/resolve.ts'
import { resolveNow } from '../../helpers/selectors/at-once.ts'

function host(id: number, hostname: string, more: Partial<SelectorHost> = {}): SelectorHost {
  const well = { status: 'ONLINE', reachable: true, noLink: false } as const
  return { id, hostname, tags: {}, ...well, os: 'Linux', arch: 'x64', ...more }
}

test('10,000 names of two dimensions fold quickly, regular or not', (t) => {
  const begun = performance.now()
  const grid = Array.from({ length: 10_000 }, (_, n) => `rack${n % 100}n${Math.floor(n / 100)}`)
  t.is(foldNodeset(grid), 'rack[0-99]n[0-99]')
  const sparse = grid.filter((_, n) => (n * 7919) % 3 !== 0)
  t.deepEqual(expandNodeset(foldNodeset(sparse)).sort(), sparse.sort())
  t.true(performance.now() - begun < 3000)
})

test('unknown names among many long ones are refused in bounded time', (t) => {
  const long = Array.from({ length: 300 }, (_, n) => host(n + 1, `${'a'.repeat(236)}${n}`))
  const many = Array.from({ length: 10_000 }, (_, n) => host(n + 1, `rack${n % 100}n${n}.example.com`))
  for (const [hosts, text] of [
    [long, `${'ab'.repeat(118)}[1000-1009]`],
    [many, 'rack[200-209]m5.exmple.com'],
  ] as const) {
    const selector = parseSelector(text)
    const begun = performance.now()
    t.throws(() => resolveNow(selector, createDirectory(hosts, [])), { message: /no such host/ })
    const took = performance.now() - begun
    t.log(`${took.toFixed(1)} ms`)
    t.true(took < 5000)
  }
})

test('a selector of 10,000 hosts resolves within two seconds', (t) => {
  const hosts = Array.from({ length: 10_000 }, (_, n) =>
    host(n + 1, `rack${n % 100}n${Math.floor(n / 100)}`, { tags: { env: n % 2 ? 'prod' : 'test' } }),
  )
  const fleet = createDirectory(hosts, [])
  const begun = performance.now()
  t.is(resolveNow(parseSelector('rack[0-99]n[0-99]&@env:prod!rack1*'), fleet).length, 4400)
  const took = performance.now() - begun
  t.log(`${took.toFixed(1)} ms`)
  t.true(took < 2000)
})

test('a selector that would examine the whole fleet repeatedly is refused in bounded time', (t) => {
  const hosts = Array.from({ length: 10_000 }, (_, n) => host(n + 1, `n${n}`, { tags: { dc: 'fra' } }))
  const fleet = createDirectory(hosts, [])
  for (const text of [
    '@dc:fra,'.repeat(2000),
    '*x*y*,'.repeat(2000),
    'x[1-99999]*,',
    '@os:linux,@*,'.repeat(1000),
  ]) {
    const begun = performance.now()
    const selector = parseSelector(`${text}n1`)
    t.throws(() => resolveNow(selector, fleet), { message: /examines more than 2,000,000 hosts/ })
    t.true(performance.now() - begun < 5000)
  }
  t.is(resolveNow(parseSelector('@id:[1-5000]'), fleet).length, 5000)
})

test('wildcards that would compare long names repeatedly are refused in bounded time', (t) => {
  const hosts = Array.from({ length: 300 }, (_, n) => host(n + 1, `${'a'.repeat(230)}${n}`))
  const fleet = createDirectory(hosts, [])
  for (const text of ['*a*a*a*a*a*a*a*[1-6600]b', `*${'a'.repeat(120)}[1-6600]b`]) {
    const begun = performance.now()
    t.throws(() => resolveNow(parseSelector(text), fleet), {
      message: /compare more than 20,000,000 characters/,
    })
    const took = performance.now() - begun
    t.log(`${took.toFixed(1)} ms`)
    t.true(took < 5000)
  }
  t.is(resolveNow(parseSelector('*a*[0-29]'), fleet).length, 300)
})

test('a hostile wildcard is matched in bounded time', (t) => {
  const fleet = createDirectory([host(1, 'a'.repeat(253))], [])
  const begun = performance.now()
  t.is(resolveNow(parseSelector(`${'*a'.repeat(100)}*b`), fleet).length, 0)
  t.true(performance.now() - begun < 1000)
})

const hostOfMany = (n: number) =>
  host(n + 1, `rack${n % 100}n${Math.floor(n / 100)}`, { tags: { env: n % 2 ? 'prod' : 'test', n: `v${n}` } })
const many = createDirectory(
  Array.from({ length: 10_000 }, (_, n) => hostOfMany(n)),
  [
    { name: 'half', hostIds: Array.from({ length: 5000 }, (_, n) => n + 1), selector: null },
    { name: 'deep', hostIds: [], selector: '@half^'.repeat(30) + '@half' },
  ],
)
const bombs: readonly (readonly [what: string, text: string])[] = [
  ['the whole fleet 200 times', '@*^'.repeat(199) + '@*'],
  ['a status 200 times', '@status:online^'.repeat(199) + '@*'],
  ['reachable 200 times', '@reachable^'.repeat(199) + '@*'],
  ['a tag 200 times', '@env:prod^'.repeat(199) + '@*'],
  ['the values of a tag', '@n:v*^'.repeat(60) + '@*'],
  ['wildcards', 'rack*n*^'.repeat(190) + '@*'],
  ['many wildcards in one term', 'rack*n[1-190]*'],
  ['a cluster of clusters', '@deep,'.repeat(30) + '@de*,@half'],
  ['all names', 'rack[0-99]n[0-99]'],
  ['names that do not exist', 'gone[1-5000]'],
  ['long comparisons', `*${'r?c*'.repeat(30)}x,`.repeat(20) + 'rack1n1'],
]
for (const [what, text] of bombs)
  test(`A08 a selector yields to other work after a bounded number of steps: ${what}`, (t) => {
    const work = resolveInSlices(parseSelector(text), many)
    const slices: number[] = []
    try {
      for (let step = work.next(); step.done !== true; step = work.next()) slices.push(step.value)
    } catch (error) {
      if (!(error instanceof RsmError)) throw error
    }
    // The last step of a slice may examine all members of a group.
    const most = stepsPerSlice + many.hosts.length
    t.true(Math.max(0, ...slices) <= most, `a slice took ${Math.max(...slices)} steps`)
    if (what !== 'all names') t.true(slices.length >= 5, `${slices.length} slices`)
  })

test('A08 a selector resolved in slices gives the same result as one resolved at once', (t) => {
  t.is(resolveNow(parseSelector('@*^'.repeat(199) + '@*'), many).length, 0)
  t.is(resolveNow(parseSelector('@*^'.repeat(198) + '@*'), many).length, 10_000)
  t.is(resolveNow(parseSelector('@deep!@half,rack1n*'), many).length, 100)
})
