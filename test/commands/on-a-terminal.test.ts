import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import {
  entryOf,
  eventStream,
  type FakeServer,
  hostNamed,
  pageOf,
  resultOf,
  startFakeServer,
  taskOf,
  taskRoutes,
} from '../fixtures/fake-server.ts'
import { temporaryDirectory } from '../fixtures/rsm.ts'
import { bashOnPty, rsm } from '../helpers/terminals/pty.ts'

const many = Array.from({ length: 40 }, (_, at) => hostNamed(at + 1, `web${at + 1}`))

function fleet(t: ExecutionContext): Promise<FakeServer> {
  const done = taskOf([resultOf('web1')])
  return startFakeServer(t, {
    ...taskRoutes(done, []),
    'GET /api/hosts': () => pageOf(many),
    'POST /api/hosts/select': () => pageOf(many),
  })
}

function onTerminal(t: ExecutionContext, server: FakeServer, line: string, env: Record<string, string> = {}) {
  const home = temporaryDirectory(t)
  return bashOnPty(t, line, home, { RSM_URL: server.url, RSM_TOKEN: 'secret', ...env })
}

const started = (server: FakeServer) =>
  server.seen.filter(({ method, path }) => method === 'POST' && path.startsWith('/api/tasks'))

test('rsm asks before it runs on more than 20 hosts, even if stdin is a script; no starts nothing', async (t) => {
  const server = await fleet(t)
  const shell = onTerminal(t, server, `echo uptime | ${rsm} exec -w 'web*' -; echo exit $?`)
  await shell.shows(/Run 'uptime' on all 40 hosts of http:\/\/127\S+, web\[1-40\]\? \[y\/N\] /)
  shell.type('n\r')
  await shell.shows(/rsm: nothing was started\s+exit 130/)
  t.deepEqual(started(server), [])
})

test('the question names the context and the beginning of a long script', async (t) => {
  const server = await fleet(t)
  const home = temporaryDirectory(t)
  mkdirSync(join(home, 'config', 'rsm'), { recursive: true })
  const contexts = { current: 'staging', contexts: { staging: { url: server.url } } }
  writeFileSync(join(home, 'config', 'rsm', 'config.json'), JSON.stringify(contexts), { mode: 0o600 })
  const line = `printf 'systemctl stop nginx\\nreboot\\n' | ${rsm} exec -a -; ${rsm} exec -a --script ./check.sh; echo exit $?`
  writeFileSync(join(home, 'check.sh'), 'uptime\n')
  const shell = bashOnPty(t, `cd '${home}'; ${line}`, home, { RSM_TOKEN: 'secret' })
  await shell.shows(/Run 'systemctl stop nginx' … on all 40 hosts of staging \(http:\S+\), web\[1-40\]\?/)
  shell.type('n\r')
  await shell.shows(/Run script check.sh on all 40 hosts of staging/)
  shell.type('n\r')
  await shell.shows(/exit 130/)
  t.deepEqual(started(server), [])
})

test('audit list at 80 columns shows times, the ends of ids and the command, and omits addresses first', async (t) => {
  const at = new Date().toISOString()
  const admin = { type: 'user', id: 1, name: 'admin', tokenId: 1 }
  const entry = (id: number, action: string, detail: object) => {
    const object = { type: 'task', id: '01M8EDHDP9PKMNCYAQJZH73ZGD', name: null }
    const actor = action === 'task.end' ? { ...admin, type: 'system', name: null } : admin
    return { id, at, actor, ip: '192.0.2.111', action, object, outcome: 'SUCCESS', detail, hash: '' }
  }
  const ran = { firstLine: 'systemctl restart nginx', selector: 'web1', hostCount: 1 }
  const entries = [entry(222, 'task.end', { hostCount: 1 }), entry(221, 'task.create', ran)]
  const server = await startFakeServer(t, { 'GET /api/audit': () => pageOf(entries) })
  const time = at.slice(11, 19)
  const shell = onTerminal(t, server, `stty cols 80; ${rsm} audit list --utc; echo exit $?`, {
    NO_COLOR: '1',
  })
  await shell.shows(/exit 0/)
  t.true(shell.shown.includes(`222  ${time}  system  task.end     task H73ZGD  SUCCESS  1 host`), shell.shown)
  t.true(
    shell.shown.includes(`221  ${time}  admin   task.create  task H73ZGD  SUCCESS  systemctl restart`),
    shell.shown,
  )
})

test('cancel and retry of latest ask for confirmation, whatever its size; no changes nothing', async (t) => {
  const failed = taskOf([resultOf('web1', { status: 'FAILED', exitCode: 1 })], { firstLine: 'deploy' })
  const running = taskOf([resultOf('web1', { status: 'RUNNING' })], {
    firstLine: 'deploy',
    status: 'RUNNING',
  })
  let isRunning = true
  const server = await startFakeServer(t, {
    'GET /api/auth/me': () => ({ username: 'ann' }),
    'GET /api/tasks': () => pageOf([isRunning ? running : failed]),
    'GET /api/tasks/task-1': () => failed,
    'GET /api/tasks/task-1/script': () => ({ ...failed, content: 'deploy', secretParams: [] }),
    'POST /api/tasks/task-1/cancel': () => {
      isRunning = false
      return { ...failed, status: 'CANCELLED' }
    },
  })
  const cancel = `${rsm} tasks cancel latest; echo exit $?`
  const shell = onTerminal(t, server, `${cancel}; ${cancel}; ${rsm} tasks retry latest; echo exit $?`)
  const question =
    /latest is task-1: 'deploy' on 1 host, started [^]*Cancel 'deploy' on 1 host of http:\S+\? \[y\/N\] /
  await shell.shows(question)
  shell.type('n\r')
  await shell.shows(new RegExp(`nothing was cancelled\\s+exit 130[^]*${question.source}`))
  t.deepEqual(started(server), [])
  shell.type('y\r')
  await shell.shows(/cancelled task-1\s+exit 0[^]*Run 'deploy' again on 1 host of http:\S+, web1\? \[y\/N\] /)
  shell.type('n\r')
  await shell.shows(/nothing was started\s+exit 130/)
  t.is(started(server).length, 1)
})

test('Ctrl-C asks on the terminal even if stdin is a script; leaving cancels nothing', async (t) => {
  const running = taskOf([resultOf('web1', { status: 'RUNNING', exitCode: null, completedAt: null })], {
    status: 'RUNNING',
  })
  const server = await startFakeServer(t, {
    ...taskRoutes(running, []),
    'GET /api/tasks/task-1/logs': (_seen, response) => {
      eventStream(response)('output', entryOf('web1', 'working\n', { id: 1 }), 1)
    },
  })
  const shell = onTerminal(t, server, `trap : INT; echo uptime | ${rsm} exec -w web1 -; echo exit $?`)
  await shell.shows(/working/)
  shell.type('\u0003')
  await shell.shows(/task task-1\s+\[c\]ancel, \[l\]eave it running, or Enter to keep watching: /)
  shell.type('long-job\r')
  await shell.shows(/long-job\s+\[c\]ancel, /)
  shell.type('l\r')
  await shell.shows(/task task-1 is still running: rsm logs -f task-1\s[^]*exit 130/)
  t.deepEqual(
    started(server).map(({ path }) => path),
    ['/api/tasks'],
  )
})

test('the status line of a copy shows bytes sent, speed and remaining time', async (t) => {
  const running = taskOf([resultOf('web1', { status: 'RUNNING', exitCode: null, completedAt: null })], {
    status: 'RUNNING',
    type: 'COPY',
  })
  const server = await startFakeServer(t, {
    ...taskRoutes(running, []),
    'GET /api/tasks/task-1/logs': (_seen, response) => {
      const transfer = { bytes: 12_000_000, total: 60_000_000, bytesPerSecond: 6_000_000 }
      eventStream(response)('task', { ...running, transfer })
    },
  })
  const shell = onTerminal(t, server, `${rsm} logs -f task-1`, { LC_ALL: 'C.UTF-8' })
  const line = /0\/1 done, 1 running · \d+ s · 12\.0 MB of 60\.0 MB · 6\.0 MB\/s · 8 s left/
  await shell.shows(line)
  t.regex(shell.shown, line)
  shell.type('\u0003')
})

test('a confirmed run targets the confirmed hosts; --yes and CI ask nothing', async (t) => {
  const server = await fleet(t)
  const line = `${rsm} exec -w 'web*' uptime && ${rsm} exec -a -y uptime && CI=1 ${rsm} exec -w 'web*' uptime; echo exit $?`
  const shell = onTerminal(t, server, line)
  await shell.shows(/\[y\/N\] /)
  shell.type('y\r')
  await shell.shows(/exit 0/)
  t.is(shell.shown.split('[y/N]').length, 2)
  const targets = started(server).map((each) => (each.body as { target: unknown }).target)
  t.deepEqual(targets, [{ hostIds: many.map(({ id }) => id) }, { all: true }, { hosts: ['web*'] }])
})

test('an error wraps at the width of the terminal, and stays whole for a pipe', async (t) => {
  const line = `stty cols 45; ${rsm} hosts list; ${rsm} hosts list 2>&1 | cat; echo over`
  const shell = bashOnPty(t, line, temporaryDirectory(t))
  await shell.shows(/over/)
  const [first = '', ...further] = shell.shown.split('\r\n').slice(0, -2)
  const whole = further.splice(-2)
  t.true(first.startsWith('rsm: ') && further.length > 1, shell.shown)
  for (const each of [first, ...further]) t.true(each.length <= 45, each)
  const words = (lines: readonly string[]) => lines.map((each) => each.trim()).join(' ')
  t.is(words([first, ...further]), words(whole))
})

test('a list longer than the screen goes to $PAGER, which may end early, be missing or be disabled', async (t) => {
  const server = await fleet(t)
  const home = temporaryDirectory(t)
  const pager = join(home, 'my pager')
  writeFileSync(pager, '#!/bin/sh\nread -r first; echo "paged: $first"\n', { mode: 0o755 })
  const list = `${rsm} hosts list`
  const lines = [
    `PAGER="'${pager}'" ${list}; echo exit $?`,
    `PAGER="'${pager}'" ${list} --limit 2; echo exit $?`,
    `PAGER="'${pager}'" ${list} --no-pager | head -1; echo exit $?`,
    `PAGER=/nowhere ${list}; echo exit $?`,
    `PAGER= ${list}; echo exit $?`,
  ]
  for (const [at, line] of lines.entries()) {
    const shell = onTerminal(t, server, line)
    await shell.shows(/exit 0/)
    const shown = at === 0 ? /^paged: (?:\S*ID) +HOSTNAME.*\s+exit 0\s*$/ : /(?<!paged: (?:\S*)?)ID +HOSTNAME/
    t.regex(shell.shown, shown, line)
    t.is(/web40/.test(shell.shown), at >= 3, line)
  }
})

test('Ctrl-C in the pager goes to the pager; rsm waits for it, and the terminal is restored', async (t) => {
  const server = await fleet(t)
  const home = temporaryDirectory(t)
  const pager = join(home, 'pager')
  writeFileSync(
    pager,
    "#!/bin/sh\ntrap 'echo got it' INT\nstty -echo\necho ready\ncat >/dev/null\nread -r _ </dev/tty\nstty echo\n",
    {
      mode: 0o755,
    },
  )
  const shell = onTerminal(
    t,
    server,
    `trap : INT; ${rsm} hosts list; echo exit $?; stty -a | grep -ow -- '-*echo'`,
    { PAGER: pager },
  )
  await shell.shows(/ready/)
  shell.type('\u0003')
  await shell.shows(/got it/)
  shell.type('\r')
  await shell.shows(/exit 0\s+echo/)
  t.is(await shell.ended, 0)
})

test('the wait line is ASCII if the locale is not UTF-8', async (t) => {
  const server = await startFakeServer(t, {
    'POST /api/hosts/select': () => pageOf([hostNamed(1, 'web1', { status: 'OFFLINE' })]),
    'GET /api/events': (_, response) => void eventStream(response),
  })
  const shell = onTerminal(t, server, `${rsm} hosts wait web1 -u 1; echo exit $?`, { LC_ALL: 'C' })
  await shell.shows(/exit 124/)
  t.true(shell.shown.includes(' waiting for web1'))
  t.notRegex(shell.shown, /[^\0-\u007f]/)
})

test('a wait on a terminal without a width, as in some pipelines, prints no status line and ends', async (t) => {
  const server = await startFakeServer(t, {
    'POST /api/hosts/select': () => pageOf([hostNamed(1, 'web1', { status: 'OFFLINE' })]),
    'GET /api/events': (_, response) => void eventStream(response),
  })
  const shell = onTerminal(t, server, `stty cols 0 rows 0; ${rsm} hosts wait web1 -u 1; echo exit $?`)
  await shell.shows(/exit 124/)
  t.false(shell.shown.includes('waiting for web1'))
  t.true(shell.shown.length < 1000, `${shell.shown.length} characters`)
})

test('A16 a pattern that matches the whole fleet asks like -a, however small the fleet; names do not', async (t) => {
  const few = many.slice(0, 2)
  const server = await startFakeServer(t, {
    ...taskRoutes(taskOf([resultOf('web1')]), []),
    'GET /api/hosts': () => pageOf(few),
    'POST /api/hosts/select': ({ body }) =>
      pageOf(JSON.stringify(body).includes('web1*') ? few.slice(0, 1) : few),
  })
  const line = (selector: string) => `${rsm} exec -w '${selector}' reboot; echo exit $?`
  const shell = onTerminal(t, server, `${line('*')}; ${line('web[1-2]')}; ${line('web1*')}`)
  await shell.shows(/Run 'reboot' on all 2 hosts of http:\/\/127\S+, web\[1-2\]\? \[y\/N\] /)
  t.deepEqual(started(server), [])
  shell.type('n\r')
  await shell.shows(/nothing was started\s+exit 130[^]*exit 0[^]*exit 0/)
  t.is(started(server).length, 2)
})
