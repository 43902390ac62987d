import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { createDirectory, type SelectorHost } from '../../../src/core/selector/directory.ts'
import { type NamedHosts, parseTarget, whyEmpty } from '../../../src/core/selector/target.ts'
import { atOnce, resolveNow } from '../../helpers/selectors/at-once.ts'

function host(id: number, hostname: string, tags: Record<string, string>): SelectorHost {
  return { id, hostname, tags, status: 'ONLINE', reachable: true, noLink: false, os: 'Linux', arch: 'x64' }
}

const directory = createDirectory(
  [
    host(1, 'web10', { role: 'web', zone: 'a' }),
    host(2, 'web2', { role: 'web', zone: 'b', note: 'a,b' }),
    host(3, 'web1', { role: 'Web', zone: 'a', note: 'x*' }),
    host(4, 'db1', { role: 'db', zone: 'a', note: 'xy' }),
  ],
  [
    { name: 'My Web', hostIds: [2], selector: null },
    { name: 'reachable', hostIds: [4], selector: null },
    { name: 'none', hostIds: [], selector: null },
  ],
)

const namesOf = (target: NamedHosts) =>
  resolveNow(parseTarget(target, 'target'), directory, { field: 'target' }).map(({ hostname }) => hostname)

const cases: readonly (readonly [title: string, target: NamedHosts, hosts: string])[] = [
  ['one name', { hosts: ['web1'] }, 'web1'],
  ['several are a union', { hosts: ['web[1-2]', 'db1'], clusters: ['none'] }, 'db1 web1 web2'],
  ['every host, in natural order', { all: true }, 'db1 web1 web2 web10'],
  ['tags alone narrow every host', { tags: ['role=web', 'zone=a'] }, 'web1 web10'],
  ['tags narrow the union', { hosts: ['web1', 'db1'], tags: ['role=web'] }, 'web1'],
  ['all with a tag', { all: true, tags: ['zone:b'] }, 'web2'],
  ['each excluded part is removed', { hosts: ['web*'], exclude: ['web*&@zone:b', 'web10'] }, 'web1'],
  ['operators stay within their part', { hosts: ['web*!web2', '@*&db1'] }, 'db1 web1 web10'],
  ['a cluster may have a space, and any case', { clusters: ['my web'] }, 'web2'],
  ['a cluster called reachable is a cluster', { clusters: ['reachable'] }, 'db1'],
  ['a tag value may hold any character', { tags: ['note=a,b'] }, 'web2'],
  ['wildcard characters in a tag value are literal', { tags: ['note=x*'] }, 'web1'],
]
for (const [title, target, hosts] of cases)
  test(`targets: ${title}`, (t) => {
    t.is(namesOf(target).join(' '), hosts)
  })

const refused: [title: string, target: NamedHosts, faults: string[]][] = [
  [
    'every unknown name with its place',
    {
      hosts: ['web1', 'web1,web3'],
      clusters: ['webs', 'none'],
      tags: ['role=web', 'role=wbe'],
      exclude: ['db9'],
    },
    [
      'target.hosts[1]: no such host: web3 (did you mean web2?)',
      'target.clusters[0]: no such cluster: webs',
      'target.tags[1]: no host has the tag role=wbe (did you mean role=web?)',
      'target.exclude[0]: no such host: db9 (did you mean db1?)',
    ],
  ],
  [
    'a wildcard as the name of a cluster',
    { clusters: ['no*'] },
    ['target.clusters[0]: no such cluster: no* (did you mean none?)'],
  ],
  [
    'all together with hosts',
    { all: true, hosts: ['web1'] },
    ['target.all: selects every host: leave out hosts and clusters'],
  ],
  ['a tag without a value', { tags: ['role=web', 'role'] }, ['target.tags[1]: must be KEY=VALUE, not role']],
  [
    'a part that cannot be parsed',
    { hosts: ['web1'], exclude: ['web[1'] },
    ['target.exclude[0]: a bracket is not closed'],
  ],
  [
    'all parts together with more names than a selector may have',
    { hosts: ['a[1-60000]', 'b[1-60000]'] },
    ['target.hosts[1]: the selector stands for more than 100,000 names'],
  ],
]
const repeated = `[${Array(999).fill('1-100').join(',')}]`
refused.push(
  [
    'too many characters in all parts',
    { hosts: Array.from({ length: 5 }, () => 'a'.repeat(131_072)) },
    ['target: its selectors have more than 524,288 characters'],
  ],
  [
    'too many repeated ranges',
    { hosts: Array.from({ length: 60 }, (_, at) => `a${at}x${repeated}`) },
    ['target.hosts[10]: the selector stands for more than 100,000 names'],
  ],
)
for (const [title, target, faults] of refused)
  test(`targets are refused: ${title}`, (t) => {
    const error = t.throws(() => namesOf(target), { instanceOf: RsmError, code: 'invalid' })
    t.deepEqual(
      error.fields.map(({ field, message }) => `${field}: ${message.replace(/ \(at character .*/, '')}`),
      faults,
    )
  })

for (const [target, why] of [
  [
    { hosts: ['zz*', 'db1!db1'], clusters: ['None'] },
    'nothing matches zz*; no host is in db1!db1; cluster none has no hosts',
  ],
  [{ hosts: ['web1', 'web2'], tags: ['role=db'] }, 'none of 2 hosts is in @role:db'],
  [{ hosts: ['web1'], exclude: ['web1,db1'] }, 'excluding web1,db1 leaves none of 1 host'],
] as const)
  test(`a target is empty because ${why}`, (t) => {
    t.deepEqual(namesOf(target), [])
    t.is(atOnce(whyEmpty(parseTarget(target, 'target'), directory)), why)
  })

for (const [title, part] of [
  ['terms', `web1${'!web1'.repeat(16)}`],
  ['names', `zz[${Array(200).fill('1').join(',')}]*&web1`],
] as const)
  test(`an empty target with many ${title} in a part is explained cheaply and briefly`, (t) => {
    const why = atOnce(whyEmpty(parseTarget({ hosts: [part] }, 'target'), directory))
    t.true(why === null || why.length < 150, why ?? '')
  })
