import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { Script } from '../../src/core/protocol/http/scripts.ts'
import { temporaryDirectory } from '../fixtures/rsm.ts'
import { commandLine } from '../helpers/clients/command-line.ts'
import { startTestServer } from '../helpers/servers/server.ts'
import { hasTerminal, runOnTerminal } from '../helpers/terminals/terminal.ts'

const onTerminal = hasTerminal ? test : test.skip
const head = `#!/bin/bash -e
# rsm: name=deploy, timeout=5m, description="Puts a version in place", tags=web release
# rsm: param VERSION required "version, like 1.2.3"
# rsm: param KEEP default=3
# rsm: param DB_PASSWORD required secret "of the \u001b[31mdatabase"
`
const body = 'echo "$VERSION $KEEP"\n'

async function fixture(t: ExecutionContext) {
  const server = await startTestServer(t)
  await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '127.0.0.1' })
  const file = join(temporaryDirectory(t), 'roll.sh')
  writeFileSync(file, head + body)
  const script = (): Promise<Script> => server.data('GET', '/api/scripts/1')
  const task = (said: string) => server.data('GET', `/api/tasks/${said.trim()}`)
  return { server, rsm: commandLine(t, server), file, script, task }
}

test("scripts add takes name and settings from the text, or the file's name; options take precedence; a taken name gives advice", async (t) => {
  const { rsm, file, script } = await fixture(t)
  const added = await rsm(['scripts', 'add', file])
  t.is(added.stdout, 'stored deploy (id 1, BASH)\n', added.stderr)
  t.like(await script(), {
    timeout: 300,
    description: 'Puts a version in place',
    tags: ['web', 'release'],
    category: null,
    content: head + body,
  })
  const taken = await rsm(['scripts', 'add', file])
  t.is(taken.exit, 6)
  t.is(taken.stderr, `rsm: a script deploy already exists\n     rsm scripts edit deploy --file ${file}\n`)
  const other = await rsm(
    ['scripts', 'add', 'other', '-', '-u', '1m', '--type', 'python', '-t', 'mine', '--json'],
    {
      input: '# rsm: type=bash, timeout=5m, tags=theirs, category=c\nprint()\n',
    },
  )
  const second = { name: 'other', type: 'PYTHON', timeout: 60, tags: ['mine'], category: 'c' }
  t.like(JSON.parse(other.stdout) as Script, second)
  writeFileSync(file, 'echo\n# rsm: name=late\n')
  const late = await rsm(['scripts', 'add', file])
  t.regex(late.stdout, /^stored roll /)
  t.regex(late.stderr, /roll\.sh, line 2: # rsm: is read only in the comments above the first command/)
  const none = await rsm(['scripts', 'add', 'roll'])
  t.is(none.exit, 2)
  t.is(none.stderr, 'rsm: no such file: roll\n     rsm scripts add FILE, or rsm scripts add NAME FILE\n')
})

test('a new text updates the stored settings, except those set separately', async (t) => {
  const { rsm, file, script } = await fixture(t)
  await rsm(['scripts', 'add', file, '--category', 'kept', '-d', 'set apart'])
  writeFileSync(file, `${head.replace('timeout=5m, ', '').replace('tags=web', 'tags=db')}${body}`)
  const edited = await rsm(['scripts', 'edit', 'deploy', '--file', file])
  t.is(edited.stdout, 'changed deploy (version 2)\n', edited.stderr)
  t.like(await script(), {
    timeout: null,
    tags: ['db', 'release'],
    category: 'kept',
    description: 'set apart',
  })
  writeFileSync(file, '# rsm: name=else, timeout=10, description="new"\n# rsm: tags=x, tagz=y\n')
  const refused = await rsm(['scripts', 'edit', 'deploy', '--file', file])
  t.is(refused.exit, 2)
  t.regex(refused.stderr, /roll\.sh, line 2, column 16: no such setting: tagz \(did you mean tags\?\)/)
  t.is((await script()).version, 2)
  writeFileSync(file, '# rsm: name=else, timeout=10, description="new"\ntrue\n')
  const renamed = await rsm(['scripts', 'edit', 'deploy', '--file', file, '-d', 'mine'])
  t.regex(renamed.stderr, /says name=else; it is kept as deploy/)
  t.like(await script(), { name: 'deploy', timeout: 10, description: 'mine', tags: [] })
})

test('S12 scripts run without a terminal names every missing, mistyped or exposed parameter, exits with 2, and starts nothing', async (t) => {
  const { rsm, file, task, server } = await fixture(t)
  await rsm(['scripts', 'add', file])
  const run = ['scripts', 'run', 'deploy', '-w', 'web1']
  const secret = { env: { DB_PASSWORD: 'hush' } }
  // A secret not named on the command line is not read from the environment: the script's author chose its name.
  const missing = await rsm([...run, '-p', 'VERSION='], secret)
  t.is(missing.exit, 2)
  t.is(
    missing.stderr,
    `rsm: missing parameters of deploy: VERSION (version, like 1.2.3), DB_PASSWORD (of the database)
     add -p VERSION=VALUE --secret-param DB_PASSWORD, with DB_PASSWORD in the environment\n`,
  )
  const wrong = await rsm([...run, '-p', 'VERSION=1', '-p', 'KEPE=1', '-p', 'DB_PASSWORD=hush'])
  t.is(wrong.exit, 2)
  t.regex(wrong.stderr, /no such param of deploy: KEPE \(did you mean KEEP\?\); DB_PASSWORD is secret, and/)
  t.is((await server.data('GET', '/api/tasks')).totalElements, 0)

  const given = [...run, '-p', "VERSION=1 'x'", '--secret-param', 'DB_PASSWORD']
  const plan = await rsm([...given, '--plan'], secret)
  t.true(
    plan.stdout.includes(`\nVERSION='1 '\\''x'\\'''\nKEEP=3\nDB_PASSWORD=(secret)\n\n#!/bin/bash`),
    plan.stdout,
  )
  t.false((plan.stdout + plan.stderr).includes('hush'))
  const detached = await rsm([...given, '--detach'], secret)
  t.deepEqual((await task(detached.stdout)).params, { VERSION: "1 'x'", KEEP: '3' }, detached.stderr)
  const shown = await rsm(['scripts', 'show', 'deploy'])
  t.regex(shown.stdout, /\nDB_PASSWORD +yes +yes +- +of the database\n/)
  t.true(
    shown.stdout.includes(
      'usage: rsm scripts run deploy -w HOST -p VERSION=VALUE [-p KEEP=3] --secret-param DB_PASSWORD\n',
    ),
  )
})

test('A15 a value that does not match its pattern starts nothing: for a stored script, a file, or over the API', async (t) => {
  const { rsm, file, server } = await fixture(t)
  writeFileSync(
    file,
    '# rsm: name=deploy, param VERSION required pattern="[0-9.]+" "like 1.2"\necho "$VERSION"\n',
  )
  t.is((await rsm(['scripts', 'add', file])).exit, 0)
  for (const what of [
    ['scripts', 'run', 'deploy'],
    ['exec', '--script', file],
  ]) {
    const refused = await rsm([...what, '-w', 'web1', '-p', 'VERSION=1;reboot'])
    t.is(refused.exit, 2)
    t.is(refused.stderr, 'rsm: VERSION does not match its pattern, [0-9.]+\n     add -p VERSION=VALUE\n')
  }
  const body = { scriptId: 1, target: { selector: 'web1' }, params: { VERSION: '1;reboot' } }
  const byApi = await rsm(['api', 'POST', '/api/tasks', '-d', JSON.stringify(body)])
  t.is(byApi.exit, 2)
  t.regex(byApi.stderr, /params\.VERSION: does not match its pattern, \[0-9\.\]\+/)
  t.is((await server.data('GET', '/api/tasks')).totalElements, 0)
  t.regex(
    (await rsm(['scripts', 'show', 'deploy'])).stdout,
    /\nVERSION +yes +no +- +\[0-9\.\]\+ +like 1\.2\n/,
  )
  writeFileSync(file, '# rsm: name=odd, param V pattern="("\n')
  const odd = await rsm(['scripts', 'add', file])
  t.is(odd.exit, 2)
  t.regex(odd.stderr, /the pattern of V is not valid in RE2/)
})

test('exec honours the settings in a script file or stdin; a mistake in them is reported before any request', async (t) => {
  const { rsm, file, task } = await fixture(t)
  const words = ['exec', '-w', 'web1', '--detach', '-p', 'VERSION=2']
  const secret = { env: { DB_PASSWORD: 'hush' } }
  const ran = await rsm([...words, '--secret-param', 'DB_PASSWORD', '--script', file], secret)
  const said = { scriptName: 'deploy', type: 'BASH', timeout: 300, params: { VERSION: '2', KEEP: '3' } }
  t.like(await task(ran.stdout), said, ran.stderr)
  const input = '# rsm: type=python, timeout=7, param VERSION required\nprint()\n'
  const piped = await rsm([...words, '-'], { input })
  t.like(await task(piped.stdout), { type: 'PYTHON', timeout: 7 }, piped.stderr)
  const typed = await rsm([...words, '-u', '8', '--type', 'bash', '-'], { input })
  t.like(await task(typed.stdout), { type: 'BASH', timeout: 8 }, typed.stderr)
  const command = await rsm([...words, '--', '# rsm: what people like'])
  t.is(command.exit, 0, command.stderr)
  const wrong = await rsm([...words, '-'], {
    input: '# rsm: param PATH\n',
    env: { RSM_URL: 'http://127.0.0.1:9' },
  })
  t.is(wrong.exit, 2)
  t.regex(wrong.stderr, /^rsm: the script on stdin, line 1, column 14: PATH decides which programs/)
})

onTerminal(
  'on a terminal rsm asks for missing params, again after an empty answer, and for secret ones without echo',
  async (t) => {
    const { rsm, file, task, server } = await fixture(t)
    await rsm(['scripts', 'add', file])
    const env = { RSM_URL: server.url, RSM_TOKEN: server.token }
    const argv = ['scripts', 'run', 'deploy', '-w', 'web1', '--detach']
    const question = 'VERSION (version, like 1.2.3): '
    const ran = await runOnTerminal(argv, temporaryDirectory(t), env, [
      [question, '\n'],
      [`${question}\r\n${question}`, '1.9\n'],
      ['DB_PASSWORD (of the database): ', 'hush\r'],
    ])
    t.is(ran.exit, 0, ran.shown)
    t.false(ran.shown.includes('hush'))
    const [taskId = ''] = /^\w{26}/m.exec(ran.shown) ?? []
    t.deepEqual((await task(taskId)).params, { VERSION: '1.9', KEEP: '3' })
  },
)
