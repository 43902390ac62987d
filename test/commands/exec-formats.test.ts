import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { Task } from '../../src/core/protocol/http/tasks.ts'
import {
  entryOf,
  eventStream,
  resultOf,
  startFakeServer,
  taskOf,
  taskRoutes,
} from '../fixtures/fake-server.ts'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { realAgent } from '../helpers/agents/real-agent.ts'
import { ScriptedAgent } from '../helpers/agents/scripted-agent.ts'
import { commandLine } from '../helpers/clients/command-line.ts'
import { startTestServer } from '../helpers/servers/server.ts'
import { missing, openWindow } from '../helpers/terminals/tmux.ts'

const withXmllint = missing('xmllint').length === 0 ? test : test.skip
const withTmux = missing('tmux').length === 0 ? test : test.skip

/** Throws the errors of xmllint about the file. */
function validate(path: string): void {
  execFileSync('xmllint', ['--noout', '--nonet', '--schema', resolve('test/fixtures/junit.xsd'), path], {
    stdio: 'pipe',
  })
}

const read = (...path: string[]) => readFileSync(join(...path), 'utf8')
const linesOf = (path: string) =>
  read(path)
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

/** Writes hostile output, and fails. */
const script = `printf 'same\\n'
printf '\\033]52;c;eA==\\007\\033[31m::add-mask::secret\\r::set-output name=a::b\\n##[error]x\\n]]><b>&\\000\\377\\n' >&2
exit 3`

withXmllint('S06 one run is printed as a GitHub step and written to files of every format', async (t) => {
  const server = await startTestServer(t)
  await realAgent(t, server, { hostname: 'web1' })
  for (const hostname of ['web2', 'web3']) {
    const agent = await ScriptedAgent.link(server, await server.enroll(hostname))
    agent.serve(() => ({ output: 'same\n' }))
  }
  const rsm = commandLine(t, server)
  const home = temporaryDirectory(t)
  const file = (name: string) => join(home, name)
  writeFileSync(file('summary.md'), 'before\n')
  const outputs = ['junit=report.xml', 'ndjson=run.ndjson', 'grouped=groups.txt', 'live=live.txt']
  const argv = [
    'exec',
    '-a',
    '-o',
    'github',
    ...outputs.flatMap((each) => ['-o', each.replace('=', `=${home}/`)]),
  ]
  const ran = await rsm([...argv, '--outdir', file('hosts'), '-'], {
    input: script,
    env: { GITHUB_ACTIONS: 'true', CI: 'true', GITHUB_STEP_SUMMARY: file('summary.md') },
  })
  t.is(ran.exit, 1, ran.stderr)

  t.regex(ran.stdout, /^::group::web1 \(FAILED\)$/m)
  t.regex(ran.stdout, /^::group::web2\nsame\n::endgroup::$/m)
  t.regex(ran.stdout, /^::error title=web1::FAILED, exit 3%0Aweb1:%0A: :add-mask: ?:secret%0A/m)
  t.notRegex(ran.stdout, /^\s*::(?!group::|endgroup::|error )/m)
  t.false(`${ran.stdout}${ran.stderr}`.includes('##['))
  const summary = read(home, 'summary.md')
  t.true(summary.startsWith('before\n### rsm exec: FAILED\n'), summary)
  t.regex(summary, /^\| web1 \| FAILED, exit 3 \|\n\| web&#91;2-3&#93; \| SUCCESS \|$/m)

  t.notThrows(() => validate(file('report.xml')))
  const report = read(home, 'report.xml')
  t.regex(report, /<testsuite [^>]*tests="3" failures="1" errors="0" skipped="0"/)
  t.regex(report, /<failure message="FAILED, exit 3" type="FAILED"\/>/)

  const lines = linesOf(file('run.ndjson'))
  t.is(lines.at(0)?.['type'], 'task')
  const task = lines.at(-1)?.['task'] as Task
  t.is(lines.at(-1)?.['type'], 'end')
  t.is(task.status, 'FAILED')
  const final = lines.filter(({ type, completedAt }) => type === 'host' && completedAt !== null)
  for (const hostname of ['web1', 'web2', 'web3']) t.true(final.some((each) => each['hostname'] === hostname))
  t.is(final.length, 3)

  const rule = '-'.repeat(15)
  t.true(read(home, 'groups.txt').endsWith(`${rule}\nweb[1-3] (3)\n${rule}\nsame\n`))
  t.regex(read(home, 'live.txt'), /^web2: same$/m)
  t.deepEqual(readdirSync(file('hosts')).sort(), [
    'web1.err',
    'web1.out',
    'web2.err',
    'web2.out',
    'web3.err',
    'web3.out',
  ])
  t.true(read(home, 'hosts', 'web1.err').startsWith('\u001b]52;c;eA==\u0007\u001b[31m::add-mask::secret\r'))
  t.is(read(home, 'hosts', 'web2.err'), '')
  t.deepEqual(
    readdirSync(home).filter((name) => name.endsWith('.tmp')),
    [],
  )

  // A finished task can be shown in any format too.
  const waited = await rsm(['tasks', 'wait', task.taskId, '-o', `junit=${file('later.xml')}`])
  t.is(waited.exit, 1)
  t.is(waited.stdout, '')
  t.is(read(home, 'later.xml'), report)
  const logged = await rsm(['logs', task.taskId, '-b', '--stream', 'stdout'])
  t.is(logged.stdout, `${rule}\nweb[1-3] (3)\n${rule}\nsame\n`)
})

test('with --json a report that cannot be written is an error in JSON, although the task succeeded', async (t) => {
  const entries = [entryOf('web1', 'x\n', { id: 1 })]
  const server = await startFakeServer(t, taskRoutes(taskOf([resultOf('web1')]), entries))
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'secret' })
  const ran = await runRsm(['exec', '-w', 'web1', '--json', '-o', 'ndjson=/dev/full', 'x'], env)
  t.is(ran.exit, 6)
  t.is((JSON.parse(ran.stdout) as Task).status, 'SUCCESS')
  const { error } = JSON.parse(ran.stderr) as { error: { exit: number; message: string } }
  t.is(error.exit, 6)
  t.regex(error.message, /^can't write \/dev\/full: /)
})

test('invalid or unwritable outputs are refused before anything starts', async (t) => {
  const server = await startFakeServer(t, taskRoutes(taskOf([resultOf('web1')]), []))
  const home = temporaryDirectory(t)
  mkdirSync(join(home, 'directory'))
  writeFileSync(join(home, 'file'), '')
  const env = cleanEnv(home, { RSM_URL: server.url, RSM_TOKEN: 'secret' })
  const cases: [string[], RegExp][] = [
    [['-o', 'lvie'], /unknown format: lvie \(did you mean live\?\)/],
    [
      ['-o', `junit=${home}/no/such/report.xml`],
      /can't write .*report\.xml: directory .*no\/such does not exist/,
    ],
    [['-o', `ndjson=${home}/directory`], /can't write .*directory: it is a directory/],
    [['--outdir', `${home}/file`], /can't write into --outdir .*file/],
    [['-o', 'junit=/dev/stdout'], /is stdout,/],
    [['-b', '-o', 'junit'], /only one format can be on stdout, not both junit and grouped/],
    [['--json', '-o', 'live'], /--json and live can't both be on stdout/],
    [['-o', 'junit='], /needs a file/],
    [['--detach', '-o', `junit=${home}/report.xml`], /--detach does not wait/],
  ]
  const all = await Promise.all(cases.map(([argv]) => runRsm(['exec', '-w', 'web1', ...argv, 'x'], env)))
  for (const [at, [argv, said]] of cases.entries()) {
    t.is(all[at]?.exit, 2, argv.join(' '))
    t.regex(all[at]?.stderr ?? '', said)
  }
  t.deepEqual(server.seen, [])
  t.deepEqual(readdirSync(home).sort(), ['directory', 'file'])
})

/** A task on web1 that writes a line, and ends when cancelled. */
function running(t: ExecutionContext) {
  const cancelled = taskOf([resultOf('web1', { status: 'CANCELLED', exitCode: null })], {
    status: 'CANCELLED',
  })
  const started = taskOf([resultOf('web1', { status: 'RUNNING', completedAt: null })], { status: 'RUNNING' })
  let isCancelled = false
  let end: (() => void) | undefined
  return startFakeServer(t, {
    ...taskRoutes(cancelled, []),
    'GET /api/tasks/task-1': () => started,
    'GET /api/tasks/task-1/logs': (_seen, response) => {
      const write = eventStream(response)
      write('task', started)
      write('output', entryOf('web1', 'working\n', { id: 1 }), 1)
      end = () => {
        write('end', cancelled)
        response.end()
        end = undefined
        isCancelled = false
      }
      // A deadline may pass before the task is followed.
      if (isCancelled) end()
    },
    'POST /api/tasks/task-1/cancel': () => {
      isCancelled = end === undefined
      end?.()
      return cancelled
    },
  })
}

test('output files are complete after an interruption and after a deadline', async (t) => {
  const server = await running(t)
  const home = temporaryDirectory(t)
  const env = cleanEnv(home, { RSM_URL: server.url, RSM_TOKEN: 'secret' })
  const argv = (name: string) => ['-o', `junit=${home}/${name}.xml`, '-o', `ndjson=${home}/${name}.ndjson`]
  const expected = /<error message="CANCELLED" type="CANCELLED"\/>\n +<system-out>working\n<\/system-out>/
  const { child, done, shows } = startRsm(['exec', '-w', 'web1', ...argv('interrupted'), 'x'], env)
  await shows('web1: working')
  child.kill('SIGINT')
  t.is((await done).exit, 130)
  const rsm = `${process.execPath} ${resolve('bin/run.js')}`
  const words = ['exec', '-w', 'web1', '--deadline', '1s', ...argv('late')].join(' ')
  const line = `${rsm} ${words} -o grouped=>(cat >${home}/piped) x; exit=$?; wait $!; exit $exit`
  const late = spawn('bash', ['--norc', '--noprofile', '-c', line], { env, stdio: 'ignore' })
  t.deepEqual(await once(late, 'close'), [124, null])
  t.is(read(home, 'piped'), `${'-'.repeat(15)}\nweb1\n${'-'.repeat(15)}\nworking\n`)
  for (const name of ['interrupted', 'late']) {
    t.regex(read(home, `${name}.xml`), expected)
    t.is(linesOf(join(home, `${name}.ndjson`)).at(-1)?.['type'], 'end')
  }
  // `tasks wait` does not cancel the task, and writes the output so far.
  const waiting = startRsm(['tasks', 'wait', 'task-1', ...argv('waited'), '-o', 'live'], env)
  await waiting.shows('web1: working')
  waiting.child.kill('SIGTERM')
  t.is((await waiting.done).exit, 143)
  t.regex(read(home, 'waited.xml'), /<error message="RUNNING" type="RUNNING"\/>/)
  t.is(server.seen.filter(({ path }) => path.endsWith('/cancel')).length, 2)
})

withTmux(
  'on a terminal a status line is shown below the output, except during a question and at the end',
  async (t) => {
    const server = await running(t)
    const window = await openWindow(
      t,
      { RSM_URL: server.url, RSM_TOKEN: 'secret', TERM: 'screen-256color' },
      [60, 12],
    )
    const rsm = `${process.execPath} ${resolve('bin/run.js')}`
    await window.type(`${rsm} exec -w web1 x; echo over`)
    await window.press('Enter')
    await window.shows(/web1: working\n0\/1 done, 1 running · \d+ s\n/)
    t.regex(await window.screen(), /\[[\d;]+mweb1:/)
    await window.resize(20, 12)
    await window.shows(/web1: working\n0\/1 done, 1 running\n\n/)
    await window.resize(60, 12)
    await window.press('C-c')
    await window.shows(
      /working\n(\^C)?\nrsm: task task-1\n\[c\]ancel, \[l\]eave it running, or Enter to keep watching: *\n\n/,
    )
    await window.type('l')
    await window.press('Enter')
    await window.shows(
      /watching: l\nrsm: task task-1 is still running: rsm logs -f task-1\n(rsm: .*\n){2}over\n/,
    )
  },
)
