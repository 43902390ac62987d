import test from 'ava'
import { splitOptions } from '../../../src/cli/command/argv.ts'

const flags = {
  hosts: { type: 'option', char: 'w', aliases: ['host'] },
  param: { type: 'option', char: 'p' },
  grouped: { type: 'boolean', char: 'b' },
  json: { type: 'boolean' },
}

const cases: [string, string[], string[]][] = [
  ['-w web1 uptime', ['-w', 'web1'], ['uptime']],
  ['-w web1 ls -l --json', ['-w', 'web1'], ['ls', '-l', '--json']],
  ['-bw web1 ls', ['-bw', 'web1'], ['ls']],
  ['-wweb1 -b ls', ['-wweb1', '-b'], ['ls']],
  ['--hosts=web1 --json ls', ['--hosts=web1', '--json'], ['ls']],
  ['--host web1 -- --weird', ['--host', 'web1'], ['--weird']],
  ['-w web1 echo -- web1', ['-w', 'web1'], ['echo', '--', 'web1']],
  ['-w - -', ['-w', '-'], ['-']],
  ['-w web1', ['-w', 'web1'], []],
  ['-w', ['-w'], []],
  ['--unknown ls', ['--unknown'], ['ls']],
  ['-p A=1 -p B=2 env', ['-p', 'A=1', '-p', 'B=2'], ['env']],
]
for (const [line, options, words] of cases)
  test(`the options of "${line}" end where the command begins`, (t) => {
    t.deepEqual(splitOptions(line.split(' '), flags), { options, words })
  })
