import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { createDirectory, type SelectorHost } from '../../../src/core/selector/directory.ts'
import { parseSelector } from '../../../src/core/selector/parse.ts'
import type { Strictness } from '../../../src/core/selector/resolve.ts'
import { whyEmpty } from '../../../src/core/selector/target.ts'
import { isUnknownName } from '../../../src/core/text/nearest.ts'
import { atOnce, resolveNow } from '../../helpers/selectors/at-once.ts'

function host(id: number, hostname: string, more: Partial<SelectorHost> = {}): SelectorHost {
  const well = { status: 'ONLINE', reachable: true, noLink: false } as const
  return { id, hostname, tags: {}, ...well, os: 'Linux', arch: 'x64', ...more }
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

test('an unknown exact name or group is reported with the nearest match', (t) => {
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

test('an unknown name is a fault in an exclusion too', (t) => {
  t.deepEqual(faults('@*!wbe2'), ['no such host: wbe2 (did you mean web2?)'])
})

test('the first of many unknown names are listed and the rest counted', (t) => {
  const messages = faults('n[1-100000]')
  t.is(messages.length, 11)
  t.is(messages.at(-1), 'and 99990 more that do not exist')
})

test('strictness decides which names must exist', (t) => {
  t.deepEqual(faults('@env:not-yet', 'names'), [])
  t.is(faults('gone', 'names').length, 1)
  t.is(faults('@gone', 'names').length, 1)
  t.is(names('web1,gone,@gone,@env:gone,@id:77', 'none'), 'Web1')
  t.deepEqual(faults('@stale'), ['no such host: gone (in the selector of cluster stale)'])
  t.is(names('@stale', 'none'), 'Web1')
})

test('clusters that refer to each other in a cycle are refused, and the error shows the cycle', (t) => {
  t.deepEqual(faults('@ouro'), ['cluster ouro contains itself: ouro → boros → ouro'])
})

for (const [text, why] of [
  ['@None', 'cluster none has no hosts'],
  ['zz*', 'nothing matches zz*'],
  ['zz*,yy*,@none', 'nothing matches zz*; nothing matches yy*; cluster none has no hosts'],
  ['web1!web1', 'excluding web1 leaves none of 1 host'],
  ['@front,db1!@front!db*!web1', 'excluding db* leaves none of 1 host'],
  ['web*&@status:WARNING', 'none of 3 hosts is in @status:WARNING'],
  ['@status:warning&web1', 'no host is in @status:warning'],
  ['web1^web1', null],
] as const)
  test(`the reason that ${text} selects no host: ${why ?? 'unknown'}`, (t) => {
    t.is(names(text), '')
    t.is(atOnce(whyEmpty(parseSelector(text), directory))?.toLowerCase() ?? null, why?.toLowerCase() ?? null)
  })

test('the reason for an empty target in an empty fleet is that there are no hosts yet', (t) => {
  t.is(atOnce(whyEmpty(parseSelector('@*!db*'), createDirectory([], []))), 'there are no hosts yet')
})

test('A14 @reachable is refused if an older server has a cluster of that name', (t) => {
  const older = createDirectory([host(1, 'web1')], [{ name: 'Reachable', hostIds: [], selector: null }])
  t.throws(() => resolveNow(parseSelector('@reachable'), older), { message: /rename the cluster/ })
})

test('A14 the reason that a selector is empty can be that no host is reachable', (t) => {
  const away = createDirectory([host(1, 'web1', { reachable: false })], [])
  t.is(atOnce(whyEmpty(parseSelector('web*&@reachable'), away)), 'none of 1 host is in @reachable')
})
