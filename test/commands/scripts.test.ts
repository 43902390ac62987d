import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { Page } from '../../src/core/protocol/http/common.ts'
import type { Script, ScriptVersionSummary } from '../../src/core/protocol/http/scripts.ts'
import { temporaryDirectory } from '../fixtures/rsm.ts'
import { commandLine } from '../helpers/clients/command-line.ts'
import { startTestServer } from '../helpers/servers/server.ts'
import { hasTerminal, runOnTerminal } from '../helpers/terminals/terminal.ts'

const onTerminal = hasTerminal ? test : test.skip
const deploy = { name: 'deploy', type: 'BASH', content: 'echo one\n', tags: ['a'], category: 'web' }

test('scripts edit changes the given fields; --file reads a file or stdin', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/scripts', deploy)
  const rsm = commandLine(t, server)
  const file = join(temporaryDirectory(t), 'deploy.sh')
  writeFileSync(file, 'echo two\n')
  const edited = await rsm([
    'scripts',
    'edit',
    'DEPLOY',
    '--file',
    file,
    '--timeout',
    '5m',
    '-d',
    'rolls out',
  ])
  t.is(edited.stdout, 'changed deploy (version 2)\n', edited.stderr)
  const options = ['--name', 'roll', '--type', 'PYTHON', '--timeout', 'default', '--category', '', '-t', '']
  const ran = await rsm(['scripts', 'edit', 'deploy', '--file', '-', ...options, '--json'], {
    input: 'print(3)\n',
  })
  t.like(JSON.parse(ran.stdout) as Script, {
    name: 'roll',
    description: 'rolls out',
    type: 'PYTHON',
    content: 'print(3)\n',
    timeout: null,
    tags: [],
    category: null,
    version: 3,
  })
  const same = await rsm(['scripts', 'edit', 'roll', '-d', 'rolls out'])
  t.is(same.stdout, 'roll is unchanged: no new version\n')
  const noTerminal = await rsm(['scripts', 'edit', 'roll'], { env: { EDITOR: 'false' } })
  t.is(noTerminal.exit, 2)
  t.regex(noTerminal.stderr, /no terminal for the editor\n.*--file FILE/)
})

test('scripts versions lists versions, and prints the text of one byte for byte', async (t) => {
  const server = await startTestServer(t)
  const first = 'echo \u001b[31mone\r\u001b[0m\n'
  const { id } = await server.data('POST', '/api/scripts', { ...deploy, content: first })
  await server.data('PATCH', `/api/scripts/${id}`, { content: 'echo two' })
  const rsm = commandLine(t, server)
  const listed = await rsm(['scripts', 'versions', 'deploy'])
  t.regex(listed.stdout, /^VERSION .*\n1 .* admin +deploy +BASH +\d+ +[0-9a-f]{12}\n2 .*\n$/)
  const { content } = JSON.parse(
    (await rsm(['scripts', 'versions', 'deploy', '--json'])).stdout,
  ) as Page<ScriptVersionSummary>
  t.deepEqual(
    content.map(({ version }) => version),
    [1, 2],
  )
  t.is((await rsm(['scripts', 'versions', 'deploy', '1'])).stdout, first)
  const back = await rsm(['scripts', 'edit', 'deploy', '--file', '-'], { input: first })
  t.is(back.stdout, 'changed deploy (version 3)\n')
  const unknown = await rsm(['scripts', 'versions', 'deploy', '9'])
  t.is(unknown.exit, 5)
  t.is(unknown.stderr, 'rsm: deploy has no version 9\n     rsm scripts versions deploy\n')
  t.is((await rsm(['scripts', 'versions', 'depoly'])).exit, 5)
  t.is((await rsm(['scripts', 'remove', 'deploy'])).exit, 2)
  t.is((await rsm(['scripts', 'remove', 'deploy', 'nothing', '--yes'])).exit, 5)
  t.is((await rsm(['scripts', 'remove', 'deploy', 'deploy', '--yes'])).stdout, 'removed deploy\n')
})

/** A stored script, and `rsm scripts edit` on a terminal with `shell` as editor; `$1` is the file. */
async function editor(t: ExecutionContext, shell: string) {
  const server = await startTestServer(t)
  const { id } = await server.data('POST', '/api/scripts', deploy)
  const home = temporaryDirectory(t)
  const program = join(home, 'editor')
  writeFileSync(program, `#!/bin/sh\nstat -c '%a %n' "$1" > ${home}/seen\n${shell}\n`)
  chmodSync(program, 0o755)
  const temporary = temporaryDirectory(t)
  const env = { RSM_URL: server.url, RSM_TOKEN: server.token, TMPDIR: temporary }
  return {
    server,
    home,
    script: (): Promise<Script> => server.data('GET', `/api/scripts/${id}`),
    edit: (more: Record<string, string> = { EDITOR: program }) =>
      runOnTerminal(['scripts', 'edit', 'deploy'], home, { ...env, ...more }),
    left: () => readdirSync(temporary),
  }
}

onTerminal(
  'scripts edit opens the editor on a private file, stores the saved text and removes the file',
  async (t) => {
    const { edit, script, left, home } = await editor(t, 'echo "echo two" >> "$1"')
    const ran = await edit()
    t.is(ran.exit, 0, ran.shown)
    t.regex(ran.shown, /changed deploy \(version 2\)/)
    t.is((await script()).content, 'echo one\necho two\n')
    t.regex(readFileSync(join(home, 'seen'), 'utf8'), /^600 .*\/deploy\.sh\n$/)
    t.deepEqual(left(), [])
  },
)

onTerminal('VISUAL takes precedence over EDITOR and may hold options', async (t) => {
  const { edit, script, home } = await editor(t, '')
  const ran = await edit({ VISUAL: `sed -i s/one/visual/`, EDITOR: 'false' })
  t.is(ran.exit, 0, ran.shown)
  t.is((await script()).content, 'echo visual\n')
  t.false(existsSync(join(home, 'seen')))
})

onTerminal(
  'an unchanged text creates no version; a failing editor changes nothing, and rsm exits with 6',
  async (t) => {
    const { edit, script, left } = await editor(t, '')
    const ran = await edit()
    t.is(ran.exit, 0)
    t.regex(ran.shown, /deploy is unchanged: no new version/)
    const failed = await edit({ EDITOR: 'sh -c \'echo lost > "$1"; exit 3\' x' })
    t.is(failed.exit, 6, failed.shown)
    t.regex(failed.shown, /ended with exit 3; nothing was changed/)
    t.is((await script()).version, 1)
    t.deepEqual(left(), [])
  },
)

onTerminal(
  'a script changed in the meantime is not overwritten; the text is kept, and the error names the file',
  async (t) => {
    const { edit, script, server } = await editor(
      t,
      `echo mine > "$1"
    curl -sf -X PATCH "$RSM_URL/api/scripts/1" -H "authorization: Bearer $RSM_TOKEN" \\
      -H 'content-type: application/json' -d '{"content":"echo theirs"}' > /dev/null`,
    )
    const ran = await edit()
    t.is(ran.exit, 6, ran.shown)
    t.regex(ran.shown, /deploy has changed meanwhile: it is now version 2/)
    const [, path = ''] = /--file (\S+)/.exec(ran.shown) ?? []
    t.is(readFileSync(path, 'utf8'), 'mine\n')
    t.is((await script()).content, 'echo theirs')
    t.is((await commandLine(t, server)(['scripts', 'edit', 'deploy', '--file', path])).exit, 0)
  },
)
