import { execFile, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import test from 'ava'
import { pageOf, resultOf, startFakeServer, taskOf, taskRoutes } from '../../fixtures/fake-server.ts'
import { cleanEnv, temporaryDirectory } from '../../fixtures/rsm.ts'

const execute = promisify(execFile)
const rsm = `${process.execPath} ${resolve('bin/run.js')}`
const told = 'rsm: stdin is not passed on; use - to run it as the script, --stdin - to pass it on\n'
const run = `${rsm} exec -w web1 cat`
/** Perl reports how many bytes a pipe holds; without it nothing is reported (2026-11-22). */
const hasPerl = spawnSync('perl', ['-e', '']).status === 0

type Case = readonly [title: string, line: string, said: string, env?: Record<string, string>]
const lines: readonly Case[] = [
  ['a file is reported', `${run} < data`, told],
  [
    'a file that another program has begun to read is ignored',
    `while read -r line; do ${run}; done < data`,
    '',
  ],
  ['an empty file is ignored', `${run} < /dev/null; : > empty; ${run} < empty`, ''],
  ['stdin that rsm reads is not reported', `${rsm} exec -w web1 - < data; ${rsm} exec -w - true < names`, ''],
  ['nothing is reported with -q', `${rsm} exec -q -w web1 cat < data`, ''],
  ['a closed stdin is ignored', `${run} <&-`, ''],
  ...(hasPerl
    ? ([
        ['a pipe is reported', `cat data | ${run}`, told],
        [
          'a pipe into a stored script is reported',
          `cat data | ${rsm} scripts run hello -w web1`,
          'rsm: stdin is not passed on\n',
        ],
        ['rsm does not wait for a pipe without data', `mkfifo open; ${run} <>open`, ''],
        ['a pipe that ended without data is ignored', `: | ${run}`, ''],
        [
          'the reported data is left for the next reader',
          `cat data | (${rsm} exec -w web1 cat; cat >&2)`,
          `${told}one\ntwo\n`,
        ],
        [
          'nothing is reported in CI, where stdin may be the rest of the job',
          `cat data | ${run}`,
          '',
          { CI: 'true' },
        ],
      ] satisfies Case[])
    : []),
]

for (const [title, line, said, more] of lines)
  test(`A16 unread data on stdin: ${title}`, async (t) => {
    const script = { id: 1, name: 'hello', content: 'true', type: 'BASH', timeout: null, version: 1 }
    const server = await startFakeServer(t, {
      ...taskRoutes(taskOf([resultOf('web1')]), []),
      'GET /api/scripts': () => pageOf([script]),
      'GET /api/scripts/1': () => script,
    })
    const home = temporaryDirectory(t)
    writeFileSync(join(home, 'data'), 'one\ntwo\n')
    writeFileSync(join(home, 'names'), 'web1\n')
    const env = cleanEnv(home, { RSM_URL: server.url, RSM_TOKEN: 'secret', ...more })
    const { stderr } = await execute('bash', ['-c', line], { cwd: home, env })
    t.is(stderr.replace(/^rsm: 1 host: .*\n/gm, ''), said)
  })
