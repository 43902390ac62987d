import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { taskOf } from '../../fixtures/fake-server.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { type SimulatedHost, simulateFleet } from '../../helpers/agents/simulated-fleet.ts'
import { commandLine } from '../../helpers/clients/command-line.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { plainShell } from '../../helpers/terminals/plain-shell.ts'
import { bashOnPty, rsm } from '../../helpers/terminals/pty.ts'
import { keepScreen, steadyScreen } from '../../helpers/terminals/screens.ts'
import { missing, openWindow } from '../../helpers/terminals/tmux.ts'
import { until } from '../../helpers/until.ts'

/** A server, 50 simulated hosts and a real one, shared by this file. */
const shared = {
  server: undefined as unknown as TestServer,
  fleet: [] as SimulatedHost[],
  shell: '',
  boxId: 0,
}
const ends: (() => unknown)[] = []
/** Hosts that have run a script: their second run succeeds. */
const before = new Set<string>()

test.before(async (t) => {
  const teardown = (end: () => unknown) => ends.unshift(end)
  const whole = { ...t, teardown } as unknown as ExecutionContext
  shared.server = await startTestServer(whole)
  shared.shell = plainShell(whole)
  const names = Array.from({ length: 50 }, (_, n) => `web${n + 1}`)
  shared.fleet = await simulateFleet(shared.server, names, (name) => {
    const number = Number(name.slice(3))
    if (before.has(name)) return { output: [['stdout', `again on ${name}\n`]] }
    before.add(name)
    return {
      output: [
        ['stdout', `hello from ${name}\n`],
        ['stdout', '漢字 and 😀: \u001b[31mred\u001b[0m\u001b]0;title\u0007 {bold}tags{/bold}\n'],
        ...(number % 10 === 3 ? ([['stderr', `the disk of ${name} is full\n`]] as const) : []),
      ],
      exitCode: number % 10 === 3 ? 3 : 0,
      goesOn: number > 40,
    }
  })
  const box = await realAgent(whole, shared.server, { hostname: 'box' })
  shared.boxId = box.hostId
  await until(
    'the agent is linked',
    async () => (await shared.server.data('GET', `/api/hosts/${box.hostId}`)).agent.connected,
  )
})
test.after.always(async () => {
  for (const end of ends) await end()
})

const open = (t: ExecutionContext, size: [number, number] = [100, 30], env: Record<string, string> = {}) =>
  openWindow(t, { RSM_URL: shared.server.url, RSM_TOKEN: shared.server.token, ...env }, size)
const inTmux = missing('tmux').length > 0 ? test.skip : test

inTmux('a running task on 50 hosts is viewed, searched, resized, cancelled, retried and left', async (t) => {
  const { server, fleet } = shared
  const hosts = fleet.map(({ hostId }) => hostId)
  const taskId = await startTask(server, hosts, { script: { content: '# first\ndeploy --all' } })
  const window = await open(t)
  await window.type(`clear; stty -g >before; echo one; ${rsm} tui ${taskId}; echo "exit $?"\n`)
  await window.shows(/40\/50 done {2}4 failed {2}10 running {2}36 success/)
  await window.shows(/web50 +hello from web50/)
  const shown = steadyScreen(await window.text()).split('\n')
  t.deepEqual(
    shown.slice(4, 9).map((line) => line.split('│')[0]?.replace(/ +/g, ' ').trim()),
    [
      '✗ web3 exit 3 TIME',
      '✗ web13 exit 3 TIME',
      '✗ web23 exit 3 TIME',
      '✗ web33 exit 3 TIME',
      '▸ web41 RUNNING TIME',
    ],
  )
  t.regex(shown[2] ?? '', /^ Hosts 50 ─{5,14}┬ all hosts ─{50,} following$/)
  t.regex(shown[0] ?? '', /^ deploy --all {2}PARALLEL, by admin {2}TASK +RUNNING TIME$/)
  t.regex(shown[1] ?? '', /^ █+░+ 40\/50 done {2}4 failed {2}10 running {2}36 success$/)
  await keepScreen(window, 'tui-task-100x30')

  await window.press('j', 'j')
  await window.shows(/┬ web13 exit 3/)
  await window.shows(
    /│ {2}hello from web13\n.*│ {2}漢字 and 😀: red \{bold\}tags\{\/bold\}\n.*│! the disk of web13 is full/,
  )
  await window.press('g')
  await window.shows(/┬ all hosts/)
  fleet[40]?.write(taskId, 'news of web41\n')
  fleet[40]?.end(taskId, 7)
  await window.shows(/✗ web41 +exit 7[\s\S]*▸ web42/)
  await window.shows(/41\/50 done {2}5 failed/)
  await window.shows(/web41 +news of web41/)

  await window.press('/')
  await window.type('NEWS of')
  await window.press('Enter')
  await window.shows(/all hosts \/NEWS of.*F follows[\s\S]*web41 +news of web41/)
  await keepScreen(window, 'tui-search-100x30')
  await window.press('N')
  await window.shows(/none above; n searches downwards: NEWS of/)
  // Without a pause they would be one key, Alt-f.
  await window.press('Escape')
  await window.shows(/┬ all hosts ─/)
  await window.press('f')
  await window.type('exit 7')
  await window.press('Enter')
  await window.shows(/Hosts 1 of 50 with exit 7/)
  await window.press('Escape')
  await window.shows(/Hosts 50/)
  await window.press('s', 's')
  await window.shows(/all hosts stderr only/)
  await window.press('s', '?')
  await window.shows(/Keys of a task/)
  await keepScreen(window, 'tui-help-100x30')
  await window.press('x')

  await window.resize(20, 5)
  await window.shows(/RUNNING +\S+\n 41\/50 done.*\n Hosts 50.*\n {2}all hosts +50\nq quit/)
  await window.resize(1, 1)
  await window.resize(200, 50)
  await window.shows(/^(?:.*\n){49}q quit.*Esc fleet/)
  await keepScreen(window, 'tui-task-200x50')
  await window.resize(80, 24)
  await window.shows(/^(?:.*\n){23}q quit/)
  await keepScreen(window, 'tui-task-80x24')

  await window.press('c')
  await window.shows(/cancel this task\? 9 running and 0 waiting/)
  await window.press('y')
  await window.shows(/CANCELLED[\s\S]*50\/50 done {2}5 failed {2}9 cancelled {2}36 success/)
  await window.press('r')
  await window.shows(/run it again on 14 hosts/)
  await window.press('y')
  await window.shows(/SUCCESS[\s\S]*14\/14 done {2}14 success/)
  await window.shows(/again on web50/)
  await window.press('q')
  await window.shows(/^one\nexit 0\nlocal>\n*$/)
  await window.type('stty -g >after; echo written\n')
  await window.shows(/^written$/m)
  const [first, last] = ['before', 'after'].map((name) => readFileSync(join(window.home, name), 'utf8'))
  t.is(first, last)
})

inTmux('A16 a command is run from the fleet on the filtered hosts, and its output is folded', async (t) => {
  const window = await open(t, [80, 24])
  await window.type(`clear; ${rsm} tui; echo "exit $?"\n`)
  await window.shows(/51 hosts/)
  await window.press('f')
  await window.type('web2')
  await window.press('Enter', 'j', 'x')
  await window.shows(/run on 1 host:/)
  await window.type('uptime --pretty')
  await window.press('Enter')
  await window.shows(/Run on 1 host of http[^]*uptime --pretty[^]*│ web2 /)
  await window.press('y')
  await window.shows(/SUCCESS[^]*1\/1 done/)
  await window.press('b')
  await window.shows(/equal output once[^]*│web2 *\n[^]*│ {2}(?:hello from|again on) web2/)
  await window.press('q')
  await window.shows(/exit 0/)
  t.pass()
})

inTmux(
  'the fleet view opens a terminal on a host and its task, copies text, is suspended and left',
  async (t) => {
    const { server, boxId } = shared
    const script = { content: 'echo said on the box; sleep 600' }
    const taskId = await startTask(server, [boxId], { script })
    // A stopped agent would leave the script running.
    t.teardown(async () => {
      await server.api('POST', `/api/tasks/${taskId}/cancel`)
      await finished(server, taskId)
    })
    const window = await open(t, [100, 30], { SHELL: shared.shell })
    await window.type(`clear; echo one; ${rsm} tui; echo "exit $?"\n`)
    await window.shows(/51 hosts {2}51 ONLINE/)
    await window.press('f')
    await window.type('box')
    await window.press('Enter', 'j')
    await window.shows(/┬ Tasks of box[\s\S]*▸ RUNNING +0\/1/)
    await keepScreen(window, 'tui-fleet-100x30')
    await window.press('t')
    await window.shows(/rsm: box\s+rsm: to leave: ~\. at the beginning of a line[\s\S]*[$#] *$/m)
    await window.type('echo $((6 * 7)); exit 3\n')
    await window.shows(/box: the shell ended with 3/)
    await window.shows(/┬ Tasks of box[\s\S]*▸ RUNNING +0\/1/)
    await window.press('Enter')
    await window.shows(/┬ box RUNNING[\s\S]*said on the box/)
    await window.press('y')
    await window.shows(/^said on the box\n+select and copy with the mouse/)
    await window.press('y')
    await window.shows(/┬ box RUNNING/)
    await window.press('C-z')
    await window.shows(/Stopped[\s\S]*local>$/m)
    await window.type('clear; fg; echo "exit $?"\n')
    await window.shows(/┬ box RUNNING/)
    await window.type('c')
    await window.shows(/cancel this task/)
    await window.type('ny')
    await window.shows(/select and copy with the mouse/)
    await window.type('q')
    await window.shows(/┬ box RUNNING/)
    await window.press('C-c')
    await window.shows(/is still running: rsm logs -f [\s\S]*local>$/m)
    t.notRegex(await window.text(), /box RUNNING/)
  },
)

inTmux('the tui reports a server that is down, and shows the changes once it is back', async (t) => {
  const server = await startTestServer(t)
  const { id } = await server.data('POST', '/api/hosts', { hostname: 'away', ip: '192.0.2.1' })
  const taskId = await startTask(server, [id], { queueSeconds: 3_600 })
  const window = await openWindow(t, { RSM_URL: server.url, RSM_TOKEN: server.token })
  await window.type(`clear; ${rsm} tui ${taskId}; echo "exit $?"\n`)
  await window.shows(/0\/1 done {2}1 pending/)
  await server.stop()
  await window.shows(/connection[\s\S]*trying again/)
  await server.restart()
  await window.shows(/0\/1 done {2}1 pending(?![\s\S]*trying again)/)
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  await window.shows(/CANCELLED[\s\S]*1\/1 done {2}1 cancelled/)
  await window.press('Escape')
  await window.shows(/1 host {2}1 OFFLINE[\s\S]*- CANCELLED 1\/1/)
  await server.stop()
  await window.shows(/trying again/)
  await server.restart()
  await window.shows(/- CANCELLED 1\/1(?![\s\S]*trying again)/)
  await window.press('q')
  await window.shows(/^exit 0\nlocal>\n*$/)
  t.pass()
})

const endings: readonly (readonly [term: string, signal: NodeJS.Signals, exit: number])[] = [
  ['linux', 'SIGTERM', 143],
  ['screen', 'SIGHUP', 129],
  ['xterm-256color', 'SIGINT', 130],
  // An error in rsm itself.
  ['tmux-256color', 'SIGUSR2', 1],
]
for (const [term, signal, exit] of endings)
  test(`the terminal is restored after ${signal} with TERM=${term}`, async (t) => {
    const { server } = shared
    const home = temporaryDirectory(t)
    const fault = "process.on('SIGUSR2',()=>{throw(new(Error)('a%20fault'))})"
    const env = { TERM: term, RSM_URL: server.url, RSM_TOKEN: server.token }
    const line = `stty -g >before; sh -c 'echo $$ >pid; exec ${rsm} tui'; code=$?; stty -g >after; exit $code`
    const screen = bashOnPty(t, line, home, {
      ...env,
      NODE_OPTIONS: `--import=data:text/javascript,${fault}`,
    })
    await screen.shows(/51 hosts/)
    process.kill(Number(readFileSync(join(home, 'pid'), 'utf8')), signal)
    t.is(await screen.ended, exit, screen.shown)
    const modes = ['before', 'after'].map((name) => readFileSync(join(home, name), 'utf8'))
    t.is(modes[0], modes[1])
    const last = (mode: string) =>
      screen.shown.lastIndexOf(`\u001b[?${mode}`.replace(/.$/, 'h')) <
      screen.shown.lastIndexOf(`\u001b[?${mode}`.replace(/.$/, 'l'))
    t.deepEqual(['1049l', '1000l', '1006l', '25l', '7l'].map(last), [true, true, true, false, false])
    if (signal === 'SIGUSR2') t.regex(screen.shown, /1049l[\s\S]*Error: a fault/)
  })

test('q leaves even if the server has not responded', async (t) => {
  let isAsked = false
  const server = createServer((_request, response) => {
    // The first response says that the task exists; later requests get no response.
    if (!isAsked) response.end(JSON.stringify({ code: 200, message: 'OK', data: taskOf([]) }))
    isAsked = true
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const env = {
    RSM_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    RSM_TOKEN: 'rsm_pat_x',
  }
  const screen = bashOnPty(t, `${rsm} tui task-1`, temporaryDirectory(t), env)
  await screen.shows(/quit/)
  screen.type('q')
  let exit: number | undefined
  void screen.ended.then((code) => {
    exit = code
  })
  // A call on its own waits a minute for a response.
  await until('the command has ended', () => exit !== undefined)
  t.is(exit, 0, screen.shown)
})

test('without a terminal, or on one without a screen, `rsm tui` suggests another command', async (t) => {
  const run = commandLine(t, shared.server)
  const piped = await run(['tui', 'latest'])
  t.is(piped.exit, 2)
  t.regex(piped.stderr, /^rsm: rsm tui needs a terminal[^\n]*\n +rsm logs -f latest\n$/)
  const json = await run(['tui', '--json'])
  t.is(json.exit, 2)
  t.regex(json.stderr, /rsm hosts list --json/)
})
