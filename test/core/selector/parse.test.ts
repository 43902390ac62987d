import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { parseSelector } from '../../../src/core/selector/parse.ts'

function messageOf(text: string): string {
  try {
    parseSelector(text, 'target.selector')
  } catch (error) {
    if (error instanceof RsmError && error.code === 'invalid' && error.fields[0]?.field === 'target.selector')
      return error.fields[0].message
    throw error
  }
  return 'no fault'
}

const faults: readonly (readonly [text: string, message: RegExp])[] = [
  ['', /must not be blank/],
  ['  ', /must not be blank/],
  ['a,,b', /missing next to an operator \(at character 3 of /],
  [',a', /missing next to an operator \(at character 1 of /],
  ['a,', /missing next to an operator \(at character 3 of /],
  ['!a', /missing next to an operator/],
  ['web[1', /a bracket is not closed \(at character 4 of "web\[1"\)/],
  ['web1]', /closing bracket without an opening one \(at character 5 of /],
  ['web[[1]]', /bracket inside a bracket/],
  ['web[]', /empty range \(at character 5 of /],
  ['web[1,,2]', /empty range \(at character 7 of /],
  ['web[a]', /"a" is not a number or a range/],
  ['web[-3]', /"-3" is not a number or a range/],
  ['web[1-2-3]', /is not a number or a range/],
  ['web[5-3]', /"5-3" runs backwards/],
  ['web[1-9/0]', /step of "1-9\/0" is 0/],
  ['web[1/2]', /is not a number or a range/],
  ['db1,web[01-3]', /different padding in "01-3": .*\(at character 9 of /],
  ['web[1-010]', /different padding/],
  ['1[9-10]', /touches digits outside its bracket/],
  ['web[1-2][3-4]', /digits between them/],
  ['web[1-2]0[3-4]', /digits between them/],
  ['web1 web2', /a space in "web1 web2": names are separated by commas/],
  ['web$', /"web\$" is not a host name/],
  ['web@db', /is not a host name/],
  ['a'.repeat(254), /at most 253/],
  ['@', /name of a group is missing/],
  [
    '@status:ONLIN',
    /no such status: ONLIN \(did you mean ONLINE\?\); there are ONLINE, WARNING, NO_LINK, OFFLINE/,
  ],
  ['@status:FOO', /no such status: FOO; there are ONLINE, WARNING, NO_LINK, OFFLINE/],
  ['@reachable:yes', /write @reachable, or @tag:reachable:yes for a tag/],
  ['@id:x', /"x" is not a host id/],
  ['@id:0', /"0" is not a host id/],
  ['@tag:os', /write @tag:KEY:VALUE/],
  ['@b@d', /is not a cluster name/],
  ['@:x', /is not a tag key/],
  ['n[1-9999999999999999]', /more than 15 digits/],
]

for (const [text, message] of faults)
  test(`the parser refuses ${JSON.stringify(text.slice(0, 20))} with a reason and a position`, (t) => {
    t.regex(messageOf(text), message)
  })

test('an expansion to more than 100,000 names is refused at once, however large', (t) => {
  for (const text of ['n[1-1000000000]', 'n[1-100001]', 'a[1-999]b[1-999]c[1-999]', 'a[1-60000],b[1-60000]'])
    t.regex(messageOf(text), /more than 100,000 names/)
  t.is(messageOf('n[1-100000]'), 'no fault')
})

test('names that grow with every bracket, and brackets with many repeated ranges, are refused at once', (t) => {
  for (const brackets of [50, 100, 800])
    t.regex(messageOf(`a[1-90000]${'b[1]'.repeat(brackets)}`), /more than 5,000,000 characters in all/)
  t.regex(messageOf(`@a[1-90000]:${'b[1]'.repeat(800)}`), /more than 5,000,000 characters in all/)
  t.regex(messageOf(`a[1-20000]${'b'.repeat(240)},b[1-20000]${'b'.repeat(240)}`), /5,000,000 characters/)
  t.regex(messageOf(`a[${'1-50000,'.repeat(1000)}1]`), /more than 100,000 names/)
  t.regex(messageOf(`a${'b[1]'.repeat(800)}`), /at most 253 characters/)
  t.is(messageOf(`rack[0-99]n[0-99]${'.example'.repeat(20)}`), 'no fault')
})

test('operands keep their operators and order', (t) => {
  const { terms } = parseSelector('web[1-2] ! web2 & @env:prod ^ db*')
  t.deepEqual(terms, [
    { operator: ',', kind: 'names', names: ['web1', 'web2'] },
    { operator: '!', kind: 'names', names: ['web2'] },
    { operator: '&', kind: 'groups', groups: [{ by: 'tag', key: 'env', value: 'prod' }] },
    { operator: '^', kind: 'wildcards', masks: ['db*'] },
  ])
})

test('groups are parsed as listed in contract §8', (t) => {
  const groups: readonly (readonly [string, unknown])[] = [
    ['@*', { by: 'everything' }],
    ['@Web Shop', { by: 'cluster', name: 'web shop' }],
    ['@env:Prod', { by: 'tag', key: 'env', value: 'prod' }],
    ['@url:http://x', { by: 'tag', key: 'url', value: 'http://x' }],
    ['@status:online', { by: 'status', value: 'online' }],
    ['@Reachable', { by: 'reachable' }],
    ['@tag:reachable:yes', { by: 'tag', key: 'reachable', value: 'yes' }],
    ['@os:Linux', { by: 'os', value: 'linux' }],
    ['@arch:arm64', { by: 'arch', value: 'arm64' }],
    ['@id:17', { by: 'id', id: 17 }],
    ['@tag:os:plan9', { by: 'tag', key: 'os', value: 'plan9' }],
  ]
  for (const [text, group] of groups)
    t.deepEqual(parseSelector(text).terms, [{ operator: ',', kind: 'groups', groups: [group] }] as never)
})
