import test from 'ava'
import { type Asked, type Manifest, readCommandLine } from '../../../src/cli/command/command-line.ts'

const helpGroup = 'GLOBAL'
const globals = {
  json: { helpGroup, type: 'boolean' },
  quiet: { helpGroup, type: 'boolean', char: 'q' },
  url: { helpGroup, type: 'option' },
  context: { helpGroup, type: 'option' },
}
const command = { flags: globals, relativePath: [] }
const exec = {
  flags: { ...globals, hosts: { type: 'option', char: 'w' } },
  strict: false,
  relativePath: [],
}
const manifest: Manifest = {
  commands: {
    exec,
    'agent:status': { flags: { json: globals.json, quiet: globals.quiet }, relativePath: [] },
    'hosts:list': command,
    'hosts:show': command,
    'webhooks:edit': { flags: { ...globals, url: { type: 'option' } }, relativePath: [] },
    whoami: command,
  },
}
const read = (line: string): Asked => readCommandLine(manifest, line === '' ? [] : line.split(' '))

const runs: [string, string, string[], boolean][] = [
  ['hosts list', 'hosts:list', [], false],
  ['hosts show web1 --json', 'hosts:show', ['web1', '--json'], true],
  ['exec -w web1 --json ls --help', 'exec', ['-w', 'web1', '--json', 'ls', '--help'], true],
  ['exec -w web1 cat --json', 'exec', ['-w', 'web1', 'cat', '--json'], false],
  ['--json hosts list', 'hosts:list', ['--json'], true],
  ['-q --context prod hosts show web1', 'hosts:show', ['-q', '--context', 'prod', 'web1'], false],
  ['--context hosts hosts list', 'hosts:list', ['--context', 'hosts'], false],
  [
    '--url=http://a exec -w web1 -- ls --json',
    'exec',
    ['--url=http://a', '-w', 'web1', '--', 'ls', '--json'],
    false,
  ],
  ['--json exec -w web1 ls --url x', 'exec', ['--json', '-w', 'web1', 'ls', '--url', 'x'], true],
  ['--context a whoami --context b', 'whoami', ['--context', 'a', '--context', 'b'], false],
  ['--json agent status', 'agent:status', ['--json'], true],
  ['--context prod webhooks edit chat', 'webhooks:edit', ['--context', 'prod', 'chat'], false],
]
for (const [line, id, argv, json] of runs)
  test(`"rsm ${line}" runs ${id}`, (t) => {
    const asked = read(line)
    t.like(asked, { kind: 'run', id, argv, json })
  })

const helps: [string, string[]][] = [
  ['', []],
  ['--help', []],
  ['help', []],
  ['hosts', ['hosts']],
  ['hosts --help', ['hosts']],
  ['help hosts list', ['hosts', 'list']],
  ['hosts list -h', ['hosts', 'list']],
  ['exec --help', ['exec']],
  ['help flags', ['flags']],
  ['--json', []],
  ['--context prod --help', []],
  ['--context prod hosts', ['hosts']],
  ['-q help hosts list', ['hosts', 'list']],
  ['--context prod agent status --help', ['agent', 'status']],
]
for (const [line, words] of helps)
  test(`"rsm ${line}" asks for help`, (t) => {
    t.deepEqual(read(line), { kind: 'help', words })
  })

const mistakes: [string, RegExp][] = [
  ['hsots list', /unknown command: hsots \(did you mean rsm hosts list\?\)/],
  ['hosts lst', /unknown command: hosts lst \(did you mean rsm hosts list\?\)/],
  ['--vesion', /^unknown option: --vesion \(did you mean rsm --version\?\)$/],
  ['-v', /\(did you mean rsm --version\?\)/],
  ['-V', /\(did you mean rsm --version\?\)/],
  ['--hlep', /\(did you mean rsm --help\?\)/],
  ['--contxt prod hosts list', /^unknown option: --contxt \(did you mean rsm --context\?\)$/],
  ['-w web1 exec ls', /^-w goes after the command: only global flags may come before it$/],
  ['-- hosts list', /^-- goes after the command/],
  ['--json -w web1 exec ls', /^-w goes after the command/],
  ['--context', /^--context needs a value$/],
  ['--json hsots list', /unknown command: hsots \(did you mean rsm hosts list\?\)/],
  [
    '--context prod agent status',
    /^rsm agent status has no --context, because it works on this machine only$/,
  ],
  [
    '--url=http://a webhooks edit chat',
    /^rsm webhooks edit has a --url of its own: write it after the command$/,
  ],
  ['constructor', /unknown command: constructor/],
]
for (const [line, message] of mistakes)
  test(`"rsm ${line}" is rejected with a message that names the fix`, (t) => {
    t.throws(() => read(line), { message })
  })
