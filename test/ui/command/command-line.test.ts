import test from 'ava'
import { type Asked, type Manifest, readCommandLine } from '../../../src/ui/command/command-line.ts'

const command = { flags: { json: { type: 'boolean' } }, relativePath: [] }
const exec = {
  flags: { json: { type: 'boolean' }, hosts: { type: 'option', char: 'w' } },
  strict: false,
  relativePath: [],
}
const manifest: Manifest = {
  commands: { exec, 'hosts:list': command, 'hosts:show': command, whoami: command },
}
const read = (line: string): Asked => readCommandLine(manifest, line === '' ? [] : line.split(' '))

const runs: [string, string, string[], boolean][] = [
  ['hosts list', 'hosts:list', [], false],
  ['hosts show web1 --json', 'hosts:show', ['web1', '--json'], true],
  ['exec -w web1 --json ls --help', 'exec', ['-w', 'web1', '--json', 'ls', '--help'], true],
  ['exec -w web1 cat --json', 'exec', ['-w', 'web1', 'cat', '--json'], false],
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
  ['--json hosts list', /a command comes before its options/],
  ['constructor', /unknown command: constructor/],
]
for (const [line, message] of mistakes)
  test(`"rsm ${line}" is a mistake that names what was meant`, (t) => {
    t.throws(() => read(line), { message })
  })
