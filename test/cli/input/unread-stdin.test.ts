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
/** Perl says how much waits in a pipe; where there is none nothing is told (2026-11-22). */
const hasPerl = spawnSync('perl', ['-e', '']).status === 0

type Case = readonly [title: string, line: string, said: string, env?: Record<string, string>]
const lines: readonly Case[] = [
  ['a file is told of', `${run} < data`, told],
  ['what another has begun to read is not ours', `while read -r line; do ${run}; done < data`, ''],
  ['an empty file is not', `${run} < /dev/null; : > empty; ${run} < empty`, ''],
  ['what is read is not', `${rsm} exec -w web1 - < data; ${rsm} exec -w - true < names`, ''],
  ['-q says nothing of it', `${rsm} exec -q -w web1 cat < data`, ''],
  ['a closed stdin is nothing', `${run} <&-`, ''],
  ...(hasPerl
    ? ([
        ['a pipe is told of', `cat data | ${run}`, told],
        [
          'so is one of a stored script',
          `cat data | ${rsm} scripts run hello -w web1`,
          'rsm: stdin is not passed on\n',
        ],
        ['a pipe in which nothing comes is not waited for', `mkfifo open; ${run} <>open`, ''],
        ['a pipe that has ended without a byte is not', `: | ${run}`, ''],
        [
          'what is told of is left to who comes next',
          `cat data | (${rsm} exec -w web1 cat; cat >&2)`,
          `${told}one\ntwo\n`,
        ],
        ['in CI it may be the rest of the job', `cat data | ${run}`, '', { CI: 'true' }],
      ] satisfies Case[])
    : []),
]

for (const [title, line, said, more] of lines)
  test(`A16 data on stdin that goes nowhere: ${title}`, async (t) => {
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
