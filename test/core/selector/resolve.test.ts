import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { createDirectory, type SelectorHost } from '../../../src/core/selector/directory.ts'
import { parseSelector } from '../../../src/core/selector/parse.ts'
import { resolveInSlices, type Strictness, sliceLooks } from '../../../src/core/selector/resolve.ts'
import { whyEmpty } from '../../../src/core/selector/why-empty.ts'
import { isUnknownName } from '../../../src/core/text/nearest.ts'
import { atOnce, resolveNow } from '../../helpers/selectors/at-once.ts'

function host(id: number, hostname: string, more: Partial<SelectorHost> = {}): SelectorHost {
  return { id, hostname, tags: {}, status: 'ONLINE', reachable: true, os: 'Linux', arch: 'x64', ...more }
}

const directory = createDirectory(
  [
    host(1, 'web10', { tags: { env: 'prod', reachable: 'no' } }),
    host(2, 'web2', { tags: { env: 'prod', os: 'plan9' }, arch: 'arm64' }),
    host(3, 'Web1', { tags: { ENV: 'Test' }, status: 'OFFLINE', reachable: false }),
    host(4, 'db1', { os: null, arch: null }),
  ],
  [
    { name: 'Front', hostIds: [1, 2, 99], selector: null },
    { name: 'none', hostIds: [], selector: null },
    { name: 'dynamic', hostIds: [], selector: '@front ! web2' },
    { name: 'future', hostIds: [], selector: '@env:not-yet' },
    { name: 'stale', hostIds: [], selector: 'web1,gone' },
    { name: 'ouro', hostIds: [], selector: '@boros' },
    { name: 'boros', hostIds: [], selector: 'web1,@ouro' },
  ],
)

function names(text: string, strictness: Strictness = 'all'): string {
  const hosts = resolveNow(parseSelector(text), directory, { strictness })
  return hosts.map((found) => found.hostname).join(' ')
}

function faults(text: string, strictness: Strictness = 'all'): string[] {
  try {
    resolveNow(parseSelector(text), directory, { field: 'target.selector', strictness })
  } catch (error) {
    if (error instanceof RsmError && error.fields.every((fault) => fault.field === 'target.selector'))
      return error.fields.map((fault) => fault.message)
    throw error
  }
  return []
}

const cases: readonly (readonly [selector: string, hosts: string])[] = [
  ['web10,WEB1,web2', 'Web1 web2 web10'],
  ['web[1-2]', 'Web1 web2'],
  ['web1,web1', 'Web1'],
  ['web*', 'Web1 web2 web10'],
  ['?b1', 'db1'],
  ['WEB?', 'Web1 web2'],
  ['w*[1-2]', 'Web1 web2'],
  ['nothing*', ''],
  ['@*', 'db1 Web1 web2 web10'],
  ['@*!web*', 'db1'],
  ['@*!web*,web2&@env:prod', 'web2'],
  ['web1^@*', 'db1 web2 web10'],
  ['@FRONT', 'web2 web10'],
  ['@fr*', 'web2 web10'],
  ['@none', ''],
  ['@dynamic', 'web10'],
  ['@future', ''],
  ['@env:prod', 'web2 web10'],
  ['@Env:TEST', 'Web1'],
  ['@env:*', 'Web1 web2 web10'],
  ['@env:x*', ''],
  ['@os:linux', 'Web1 web2 web10'],
  ['@tag:os:plan9', 'web2'],
  ['@arch:arm64', 'web2'],
  ['@status:offline', 'Web1'],
  ['@status:WARNING', ''],
  ['@reachable', 'db1 web2 web10'],
  ['web*&@Reachable', 'web2 web10'],
  ['@*!@reachable', 'Web1'],
  ['@tag:reachable:no', 'web10'],
  ['@id:4', 'db1'],
  ['@id:[1-3]!@id:2', 'Web1 web10'],
]

for (const [selector, hosts] of cases)
  test(`'${selector}' selects ${hosts === '' ? 'no host' : hosts}`, (t) => {
    t.is(names(selector), hosts)
  })

test('an exact name or group that does not exist is named, with the nearest', (t) => {
  t.deepEqual(faults('wbe2,@frnt,@env:prd,@os:linus,@arch:arm46,@nokey:x,@id:17'), [
    'no such host: wbe2 (did you mean web2?)',
    'no such cluster: frnt (did you mean Front?)',
    'no host has the tag env=prd (did you mean env=prod?)',
    'no such group: @os:linus (did you mean @os:Linux?)',
    'no such group: @arch:arm46 (did you mean @arch:arm64?)',
    'no host has the tag nokey=x',
    'no such host: @id:17',
  ])
  t.true(faults('wbe2,@nokey:x').every(isUnknownName))
})

test('a name that does not exist is a fault in an exclusion too', (t) => {
  t.deepEqual(faults('@*!wbe2'), ['no such host: wbe2 (did you mean web2?)'])
})

test('of many unknown names the first are listed and the rest counted', (t) => {
  const messages = faults('n[1-100000]')
  t.is(messages.length, 11)
  t.is(messages.at(-1), 'and 99990 more that do not exist')
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

test('strictness says what has to exist', (t) => {
  t.deepEqual(faults('@env:not-yet', 'names'), [])
  t.is(faults('gone', 'names').length, 1)
  t.is(faults('@gone', 'names').length, 1)
  t.is(names('web1,gone,@gone,@env:gone,@id:77', 'none'), 'Web1')
  t.deepEqual(faults('@stale'), ['no such host: gone (in the selector of cluster stale)'])
  t.is(names('@stale', 'none'), 'Web1')
})

test('clusters that name one another in a circle are refused, with the circle', (t) => {
  t.deepEqual(faults('@ouro'), ['cluster ouro contains itself: ouro → boros → ouro'])
})

test('10,000 hosts resolve without a noticeable wait', (t) => {
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

test('a selector that would look at the whole fleet over and over is refused in bounded time', (t) => {
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
    t.throws(() => resolveNow(selector, fleet), { message: /looks at more than 2,000,000 hosts/ })
    t.true(performance.now() - begun < 5000)
  }
  t.is(resolveNow(parseSelector('@id:[1-5000]'), fleet).length, 5000)
})

test('wildcards that would compare long names over and over are refused in bounded time', (t) => {
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

for (const [text, why] of [
  ['@None', 'cluster none has no hosts'],
  ['zz*', 'nothing is like zz*'],
  ['zz*,yy*,@none', 'nothing is like zz*; nothing is like yy*; cluster none has no hosts'],
  ['web1!web1', 'without web1 none is left of 1 host'],
  ['@front,db1!@front!db*!web1', 'without db* none is left of 1 host'],
  ['web*&@status:WARNING', 'of 3 hosts before it none is in @status:WARNING'],
  ['@status:warning&web1', 'no host is in @status:warning'],
  ['web1^web1', null],
] as const)
  test(`why ${text} names no host: ${why ?? 'not known'}`, (t) => {
    t.is(names(text), '')
    t.is(atOnce(whyEmpty(parseSelector(text), directory))?.toLowerCase() ?? null, why?.toLowerCase() ?? null)
  })

test('why a fleet without hosts is an empty target', (t) => {
  t.is(atOnce(whyEmpty(parseSelector('@*!db*'), createDirectory([], []))), 'there are no hosts yet')
})

test('A14 a cluster that an older server calls reachable is not taken for what can be reached', (t) => {
  const older = createDirectory([host(1, 'web1')], [{ name: 'Reachable', hostIds: [], selector: null }])
  t.throws(() => resolveNow(parseSelector('@reachable'), older), { message: /rename the cluster/ })
})

test('A14 where nothing is reachable, that is why a selector names no host', (t) => {
  const away = createDirectory([host(1, 'web1', { reachable: false })], [])
  t.is(atOnce(whyEmpty(parseSelector('web*&@reachable'), away)), 'of 1 host before it none is in @reachable')
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
  test(`A08 a selector gives way to others after a bounded number of looks: ${what}`, (t) => {
    const work = resolveInSlices(parseSelector(text), many)
    const slices: number[] = []
    try {
      for (let step = work.next(); step.done !== true; step = work.next()) slices.push(step.value)
    } catch (error) {
      if (!(error instanceof RsmError)) throw error
    }
    // The last look of a slice may be at the members of a whole group.
    const most = sliceLooks + many.hosts.length
    t.true(Math.max(0, ...slices) <= most, `a slice looked at ${Math.max(...slices)}`)
    if (what !== 'all names') t.true(slices.length >= 5, `${slices.length} slices`)
  })

test('A08 the answer to a selector in slices is that of one at once', (t) => {
  t.is(resolveNow(parseSelector('@*^'.repeat(199) + '@*'), many).length, 0)
  t.is(resolveNow(parseSelector('@*^'.repeat(198) + '@*'), many).length, 10_000)
  t.is(resolveNow(parseSelector('@deep!@half,rack1n*'), many).length, 100)
})
