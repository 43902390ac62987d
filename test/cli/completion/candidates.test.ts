import { readFileSync } from 'node:fs'
import test from 'ava'
import { type Answer, candidatesFor } from '../../../src/cli/completion/candidates.ts'
import type { Manifest } from '../../../src/cli/completion/kinds.ts'
import type { Lookup } from '../../../src/cli/completion/names-cache.ts'
import { wantedAtCursor } from '../../../src/cli/completion/wanted.ts'

const manifest = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as Manifest

const world: Record<string, string[]> = {
  hosts: ['web1', 'web2', 'web10', 'db1'],
  groups: ['tag:role:web', 'tag:role:db', 'tag:zone:a', 'os:linux', 'arch:x64', 'arch:arm64'],
  clusters: ['web', 'my cluster'],
  scripts: ['deploy', 'disk', 'a\u001b[31m red', 'two\nlines', 'right\u202eleft'],
  tasks: ['20261121-b', '20261121-a'],
  users: ['admin', 'ann'],
  tokens: ['nightly'],
  enrollments: ['web-token'],
  webhooks: ['call', 'chat'],
  recordings: ['s1'],
  sessions: ['s2'],
  contexts: ['prod', 'staging'],
}
const lookup: Lookup = async (listed) => (world[listed] ?? []).map((name) => ({ name, about: '' }))

/** The cursor is at the end of the last word of the line. */
function complete(line: string): Promise<Answer> {
  const words = line.split(' ')
  const current = words.pop() ?? ''
  return candidatesFor(wantedAtCursor(manifest, words, current), current, manifest, lookup)
}
const wordsOf = ({ candidates }: Answer) => candidates.map(({ word }) => word)

const lines: [string, string[]][] = [
  ['ho', ['hosts']],
  ['hosts l', ['list']],
  ['help hosts sh', ['show']],
  ['help hosts show w', []],
  ['hosts list --stat', ['--status']],
  ['hosts list --status O', ['ONLINE', 'OFFLINE']],
  ['hosts list --status=off', ['--status=OFFLINE']],
  ['logs x --stream std', ['stdout', 'stderr']],
  ['events --type host,t', ['host,task']],
  ['exec --strategy r', ['rolling']],
  ['exec --limit m', ['memory=']],
  ['exec -o j', ['junit']],
  ['exec -o junit=', []],
  ['tasks wait x 20261121-a', ['20261121-a']],
  ['hosts wait web1,d', ['web1,db1']],
  ['completion f', ['fish']],
  ['api P', ['POST', 'PATCH']],

  ['hosts show we', ['web1', 'web2', 'web10']],
  ['hosts show WEB1', ['web1', 'web10']],
  ['hosts revoke web1 d', []],
  ['hosts show --json web', ['web1', 'web2', 'web10']],
  ['hosts show --url http://x web', ['web1', 'web2', 'web10']],
  ['hosts show -- d', ['db1']],
  ['terminal d', ['db1']],
  ['terminal db1 -- w', []],
  ['recordings list --host d', ['db1']],
  ['exec -w d', ['db1']],
  ['exec -wd', ['-wdb1']],
  ['exec -bw d', ['db1']],
  ['exec --hosts=d', ['--hosts=db1']],
  ['exec --host d', ['db1']],
  ['exec -w web1 -x d', ['db1']],
  ['exec -w db1,web2', ['db1,web2']],
  ['exec -w web1!d', ['web1!db1']],
  ['exec -w @web&d', ['@web&db1']],
  ['exec -w web[1-', []],
  ['exec -w web[1,d', []],
  ['exec -w web[1-3],d', ['web[1-3],db1']],
  ['exec -w web*', []],
  ['exec -w @w', ['@web']],
  ['exec -w @my', ['@my cluster']],
  ['exec -w db1,@ro', ['db1,@role:web', 'db1,@role:db']],
  ['exec -w @z', ['@zone:a']],
  ['exec -w @re', ['@reachable']],
  ['exec -w @role:d', ['@role:db']],
  ['exec -w @tag:role:w', ['@tag:role:web']],
  ['exec -w @STATUS:on', ['@STATUS:ONLINE']],
  ['exec -w @arch:', ['@arch:x64', '@arch:arm64']],
  ['exec -t r', ['role=web', 'role=db']],
  ['exec -t role=d', ['role=db']],
  ['hosts edit web1 --untag z', ['zone']],
  ['exec -w web1 up', []],
  ['exec -w web1 uptime --st', []],
  ['exec -w web1 -- --st', []],
  ['exec -w web1 ', []],
  ['exec -g m', ['my cluster']],
  ['clusters show w', ['web']],
  ['exec --script de', ['deploy']],
  ['scripts run d', ['deploy', 'disk']],
  ['scripts run a', []],
  ['scripts show two', []],
  ['scripts show right', []],
  ['tasks show ', ['latest', '20261121-b', '20261121-a']],
  ['logs -f l', ['latest']],
  ['tasks cancel ', ['latest', '20261121-b', '20261121-a']],
  ['logs -f 20261121-a', ['20261121-a']],
  ['users show a', ['admin', 'ann']],
  ['tokens remove n', ['nightly']],
  ['enrollments remove w', ['web-token']],
  ['webhooks edit ch', ['chat']],
  ['webhooks add x y --event host.o', ['host.offline', 'host.online']],
  ['recordings play s', ['s1']],
  ['terminal --watch s', ['s2']],
  ['context use p', ['prod']],
  ['hosts list --context s', ['staging']],
  ['users add a', []],
  ['constructor ', []],
  ['--cont', ['--context']],
  ['--c', ['--context', '--ca-file']],
  ['--v', ['--version']],
  ['--context p', ['prod']],
  ['--context=p', ['--context=prod']],
  ['--context prod ho', ['hosts']],
  ['--context prod --js', ['--json']],
  ['-q --json --js', []],
  ['--json exec -w d', ['db1']],
  ['--json hosts show we', ['web1', 'web2', 'web10']],
  ['--json hosts list --js', []],
  ['-q help hosts sh', ['show']],
  ['help fl', ['flags']],
  ['-w web1 ex', []],
  ['agent status --cont', []],
  ['hosts constructor ', []],
  ['hosts list --constructor=', []],
]
for (const [line, expected] of lines)
  test(`"rsm ${line}" completes to ${expected.join(' or ') || 'nothing'}`, async (t) => {
    t.deepEqual(wordsOf(await complete(line)), expected)
  })

const files: [string, Answer['files']][] = [
  ['hosts list --ca-file ', { only: 'files', lead: '' }],
  ['hosts list --ca-file=/e', { only: 'files', lead: '--ca-file=' }],
  ['exec -o junit=re', { only: 'files', lead: 'junit=' }],
  ['scripts add deploy ./d', { only: 'files', lead: '' }],
  ['exec --script ./d', { only: 'files', lead: '' }],
  ['exec --script d', undefined],
  ['recordings play ./x', { only: 'files', lead: '' }],
  ['server start --data-dir ', { only: 'directories', lead: '' }],
]
for (const [line, expected] of files)
  test(`"rsm ${line}" ${expected === undefined ? 'does not complete file names' : `completes to ${expected.only} of this machine`}`, async (t) => {
    t.deepEqual((await complete(line)).files, expected)
  })

test('options that are given or excluded by others are not offered; global options come last', async (t) => {
  const offered = wordsOf(await complete('clusters edit web -w web1 --'))
  t.false(offered.includes('--hosts'))
  t.false(offered.includes('--selector'))
  t.true(offered.indexOf('--name') < offered.indexOf('--json'))
  t.true(wordsOf(await complete('exec -w web1 --')).includes('--hosts'))
})
