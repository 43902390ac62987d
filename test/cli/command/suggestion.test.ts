import { readFileSync } from 'node:fs'
import test from 'ava'
import { type Manifest, readCommandLine } from '../../../src/cli/command/command-line.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'

const manifest = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as Manifest

const commands: [string, string | undefined][] = [
  ['hsots', 'hosts'],
  ['hots list', 'hosts list'],
  ['hosts lst', 'hosts list'],
  ['host list', 'hosts list'],
  ['HOSTS LIST', 'hosts list'],
  ['task shw x', 'tasks show'],
  ['exce -w web1 ls', 'exec'],
  ['log x', 'logs'],
  ['tasks logs x', 'logs'],
  ['tasks log x', 'logs'],
  ['hots -w web1', 'hosts'],
  ['help hots', 'hosts'],
  ['ps', undefined],
  ['get hosts', undefined],
  ['chmod a b', undefined],
  ['hosts frobnicate', undefined],
  ['frobnicate', undefined],
  ['toString', undefined],
]
for (const [line, meant] of commands)
  test(`"rsm ${line}" is an unknown command; the suggestion is ${meant ?? 'none'}`, (t) => {
    const { message } = t.throws(() => readCommandLine(manifest, line.split(' ')))
    t.regex(message, /^unknown command: /)
    t.is(/did you mean rsm (.+)\?/.exec(message)?.[1], meant)
  })

const options: [string, RegExp][] = [
  ['hosts list --hsots web1', /unknown option --hsots \(did you mean --hosts\?\)/],
  ['hosts list --status onlin', /--status=onlin is not one of: .* \(did you mean ONLINE\?\)/],
  ['hosts list -o nodset', /--output=nodset is not one of: .* \(did you mean nodeset\?\)/],
  ['completion bsh', /^rsm: bsh is not one of: bash, zsh, fish \(did you mean bash\?\)/],
  ['hosts list --no-headers', /^rsm: unknown option --no-headers\n/],
  ['hosts show web1 -o json', /unknown option -o \(did you mean --json\?\)/],
  ['exec -w web1 -o json ls', /unknown format: json.*--json prints the task/s],
  ['exec -w web1 --strategy roling ls', /unknown strategy: roling \(did you mean rolling\?\)/],
]
for (const [line, message] of options)
  test(`"rsm ${line}" exits with 2, and suggests the right spelling where there is one`, async (t) => {
    const env = cleanEnv(temporaryDirectory(t), { RSM_URL: 'http://127.0.0.1:1', RSM_TOKEN: 'x' })
    const ran = await runRsm(line.split(' '), env)
    t.is(ran.exit, 2, ran.stderr)
    t.regex(ran.stderr, message)
  })
