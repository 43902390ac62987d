import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { temporaryDirectory } from '../fixtures/rsm.ts'
import { realAgent } from '../helpers/agents/real-agent.ts'
import { commandLine } from '../helpers/clients/command-line.ts'
import { startTestServer, type TestServer } from '../helpers/servers/server.ts'
import { plainShell } from '../helpers/terminals/plain-shell.ts'
import { bashOnPty, rsm } from '../helpers/terminals/pty.ts'
import { missing, openWindow } from '../helpers/terminals/tmux.ts'
import { until } from '../helpers/until.ts'

/** Server and agent of all tests of this file. */
const shared = { server: undefined as unknown as TestServer, shell: '' }
const ends: (() => unknown)[] = []
test.before(async (t) => {
  const teardown = (end: () => unknown) => ends.unshift(end)
  const whole = { ...t, teardown } as unknown as ExecutionContext
  shared.server = await startTestServer(whole)
  shared.shell = plainShell(whole)
  const { hostId } = await realAgent(whole, shared.server, { hostname: 'web1' })
  await until(
    'it is linked',
    async () => (await shared.server.data('GET', `/api/hosts/${hostId}`)).agent.connected,
  )
})
test.after.always(async () => {
  for (const end of ends) await end()
})

/** A window whose shell runs `rsm` against that server. */
function openTerminal(t: ExecutionContext) {
  return openWindow(t, { RSM_URL: shared.server.url, RSM_TOKEN: shared.server.token })
}

const lacksTmux = missing('tmux').length > 0
const inTmux = lacksTmux ? test.skip : test
const withVim = missing('tmux', 'vim').length > 0 ? test.skip : test
const withHtop = missing('tmux', 'htop').length > 0 ? test.skip : test

inTmux(
  'a shell on a host accepts input, resizes, suspends, resumes, and ends with its exit code',
  async (t) => {
    const window = await openTerminal(t)
    await window.type(`clear; stty -g >before; ${rsm} terminal web1 --shell ${shared.shell}\n`)
    await window.shows(/[$#]$/m)
    await window.type("PS1='remote> '\n")
    await window.shows(/^remote>$/m)
    await window.type('echo 漢字 $((6 * 7)); stty size\n')
    await window.shows(/^漢字 42\n30 100$/m)
    await window.type('until [ "$(stty size)" = "20 80" ]; do sleep 0.1; done; echo resized\n')
    await window.resize(80, 20)
    await window.shows(/^resized$/m)
    await window.type('echo up; sleep 1000\n')
    await window.shows(/^up$/m)
    await window.press('C-c')
    await window.shows(/\^C\nremote>$/m)

    await window.type('\n~')
    await window.press('C-z')
    await window.shows(/Stopped[\s\S]*local>$/m)
    await window.type('stty -g >between; clear; fg\n')
    await window.shows(/^.*terminal web1.*$/m)
    await window.type('\nexit 7\n')
    await window.shows(/^local>$/m)
    await window.type('echo "exit $?"; stty -g >after\n')
    await window.shows(/^exit 7$[\s\S]*local>$/m)
    const modes = ['before', 'between', 'after'].map((name) => readFileSync(join(window.home, name), 'utf8'))
    t.is(modes[0], modes[1])
    t.is(modes[0], modes[2])
  },
)

withVim('vim has the same screens through rsm as without it, and writes its file', async (t) => {
  const [through, direct] = await Promise.all([openTerminal(t), openWindow(t)])
  const text = Array.from({ length: 60 }, (_, at) => `line ${at + 1} über 漢字 ${'x'.repeat(at)}`).join('\n')
  const same = (what: string) =>
    until(`${what} looks the same`, async () => (await through.screen()) === (await direct.screen())).catch(
      async () => {
        t.is(await through.screen(), await direct.screen(), what)
      },
    )
  for (const window of [through, direct]) writeFileSync(join(window.home, 'text.txt'), `${text}\n`)
  const vim = `vim -u NONE -i NONE -N --cmd 'syntax off|set ruler ttimeoutlen=50' text.txt`
  await direct.type(`clear; ${vim}\n`)
  await through.type(
    `clear; ${rsm} terminal web1 --shell ${shared.shell} -- "cd $HOME; exec ${vim}"; echo "exit $?"\n`,
  )
  await Promise.all([direct.shows(/^line 29 /m), through.shows(/^line 29 /m)])
  await same('the file')
  const steps: [what: string, keys: string[]][] = [
    ['typing', ['G', 'o', 'new 字', 'Escape']],
    ['another window', [':split', 'Enter', '1', '0', 'G']],
    ['a selection', ['V', '3', 'j']],
  ]
  for (const [what, keys] of steps) {
    for (const window of [through, direct]) await window.press(...keys)
    await same(what)
  }
  for (const window of [through, direct]) await window.resize(72, 22)
  await same('a smaller window')
  for (const window of [through, direct]) await window.press('Escape', ':wqa', 'Enter')
  await through.shows(/^exit 0$/m)
  t.is(readFileSync(join(through.home, 'text.txt'), 'utf8'), `${text}\nnew 字\n`)
})

withHtop('htop starts, follows the size of the window, and quits', async (t) => {
  const window = await openTerminal(t)
  await window.type(`clear; ${rsm} terminal web1 --shell sh -- htop; echo "exit $?"\n`)
  await window.shows(/Load average[\s\S]*PID[\s\S]*\nF1Help.*F10Quit *\n$/)
  await window.resize(120, 40)
  await window.shows(/^(?:.*\n){39}F1Help.*F10Quit *\n$/)
  await window.press('q')
  await window.shows(/^exit 0$[\s\S]*local>$/m)
  t.pass()
})

test('an administrator can watch, with a notice to the user, and cannot type', async (t) => {
  const { server } = shared
  const home = temporaryDirectory(t)
  const env = { RSM_URL: server.url, RSM_TOKEN: server.token }
  const user = bashOnPty(
    t,
    `exec ${rsm} terminal web1 --shell sh -- 'echo begun; read word; echo "<$word>"; exit 3'`,
    home,
    env,
  )
  await user.shows(/begun/)
  const open = await server.data('GET', '/api/terminals?status=OPEN')
  const isOurs = ({ command }: { command: string | null }) => command?.includes('begun')
  const { sessionId } = open.content.find(isOurs)
  const watcher = bashOnPty(t, `exec ${rsm} terminal --watch ${sessionId}`, home, env)
  await watcher.shows(/begun/)
  await user.shows(/rsm: admin reads along/)
  watcher.type('word\r')
  watcher.type('q')
  t.is(await watcher.ended, 0, watcher.shown)
  await user.shows(/no longer reads along/)
  const later = bashOnPty(t, `exec ${rsm} terminal --watch ${sessionId}`, home, env)
  await later.shows(/begun/)
  user.type('mine\r')
  t.is(await user.ended, 3)
  t.regex(user.shown, /<mine>/)
  t.is(await later.ended, 0)
  t.regex(later.shown, /<mine>[\s\S]*rsm: the session has ended with exit code 3/)
})

test('the shell runs commands from a piped stdin, and its output keeps its line ends', async (t) => {
  const run = commandLine(t, shared.server)
  const piped = await run(['terminal', 'web1', '--shell', 'sh'], {
    input: 'echo one\nprintf "two\\r\\n\\tthree"\nexit 5\n',
  })
  t.deepEqual([piped.exit, piped.stdout, piped.stderr], [5, 'one\ntwo\r\n\tthree', ''])
  const command = await run(['terminal', 'web1', '--shell', 'sh', '--', 'echo', 'a  b;', 'kill -9 $$'], {
    input: 'not read',
  })
  t.deepEqual([command.exit, command.stdout], [137, 'a b\n'])
  const reading = await run([
    'terminal',
    'web1',
    '--shell',
    'sh',
    '--',
    'cat; read line || echo nothing; tty <&2',
  ])
  t.regex(reading.stdout, /^nothing\n\/dev\/pts\/\d+\n$/)
  const nowhere = await run(['terminal', 'web7'], { input: '' })
  t.is(nowhere.exit, 5)
  const usage = await run(['terminal', 'web1'], { input: '\n' })
  t.is(usage.exit, 2)
  t.regex(usage.stderr, /stdin is empty/)
  const long = await run(['terminal', 'web1'], { input: '#'.repeat(256 * 1024 + 1) })
  t.is(long.exit, 2)
  t.regex(long.stderr, /256 KiB[\s\S]*rsm exec -w HOST -/)
})

test('a closed stdout ends the session at once, and piped output appears as lines on a terminal', async (t) => {
  const { server } = shared
  const env = { RSM_URL: server.url, RSM_TOKEN: server.token }
  const closed = `${rsm} terminal web1 --shell sh -- 'yes closing' | head -1; echo "exit \${PIPESTATUS[0]}"`
  const lines = `${rsm} terminal web1 --shell sh -- 'echo one; echo two' | cat`
  const home = temporaryDirectory(t)
  const [pipe, tee] = [bashOnPty(t, closed, home, env), bashOnPty(t, lines, home, env)]
  t.is(await pipe.ended, 0)
  t.is(pipe.shown, 'closing\r\nexit 141\r\n')
  t.is(await tee.ended, 0)
  t.is(tee.shown, 'one\r\ntwo\r\n')
  const isOpen = async () => {
    const { content } = await server.data('GET', '/api/terminals?status=OPEN')
    return content.some(({ command }: { command: string | null }) => command === 'yes closing')
  }
  // A session that was only dropped would stay open for 60 s.
  await until('it has ended', async () => !(await isOpen()), 40_000)
})

test('a terminal on a host that is unknown, OFFLINE or without the shell is refused with a remedy', async (t) => {
  const { server } = shared
  const run = commandLine(t, server)
  await server.data('POST', '/api/hosts', { hostname: 'db1', ip: '10.0.0.1' })
  const cases: [argv: string[], exit: number, stderr: RegExp][] = [
    [['web11', '--', 'true'], 5, /web11.*did you mean web1/],
    [['db1', '--', 'true'], 255, /^rsm: db1 is OFFLINE: never heard\n +rsm hosts doctor db1\n$/],
    [['web1', '--shell', '/no/shell', '--', 'true'], 6, /no\/shell/],
    [['web1', 'true'], 2, /rsm terminal web1 -- true/],
    [['web1', '--watch', 'x'], 2, /or a session to --watch/],
    [['--watch', 'nosuch'], 5, /nosuch/],
  ]
  for (const [argv, exit, stderr] of cases) {
    const ran = await run(['terminal', ...argv])
    t.is(ran.exit, exit, argv.join(' '))
    t.regex(ran.stderr, stderr)
  }
})
