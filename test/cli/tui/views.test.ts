import type { ExecutionContext } from 'ava'
import test from 'ava'
import { TaskState } from '../../../src/cli/task/task-state.ts'
import { widthOf } from '../../../src/cli/text/width.ts'
import { FleetState } from '../../../src/cli/tui/fleet-state.ts'
import { LogReader } from '../../../src/cli/tui/log/reader.ts'
import { paintRow } from '../../../src/cli/tui/screen/paint.ts'
import type { Frame, Size } from '../../../src/cli/tui/screen/screen.ts'
import { FleetView } from '../../../src/cli/tui/view/fleet-view.ts'
import { shortTime } from '../../../src/cli/tui/view/host-pane.ts'
import { doctorLines } from '../../../src/cli/tui/view/overlay.ts'
import { taskTitle } from '../../../src/cli/tui/view/task-rows.ts'
import { TaskView } from '../../../src/cli/tui/view/task-view.ts'
import type { Host } from '../../../src/core/protocol/http/hosts.ts'
import type { Task, TaskSummary } from '../../../src/core/protocol/http/tasks.ts'
import type { TaskResult } from '../../../src/core/tasks/task.ts'
import { endedTask, healthyAgent, healthyHost, succeeded } from '../../helpers/api/records.ts'
import { until } from '../../helpers/until.ts'

process.env['LC_ALL'] = 'C.UTF-8'
const now = Date.parse('2026-03-02T10:00:00.000Z')
const usual: Size = { cols: 80, rows: 14 }

/** The rows of a frame as a terminal shows them: each segment in its column. */
function screenOf({ rows }: Frame): string[] {
  return rows.map((row) => {
    let line = ''
    for (const { at, spans } of row) {
      const text = spans.map((span) => span.text).join('')
      const kept = Array.from(line).slice(0, at).join('')
      line = kept + ' '.repeat(Math.max(0, at - widthOf(kept))) + text + line.slice(kept.length + text.length)
    }
    return line.trimEnd()
  })
}

function resultOf(hostId: number, hostname: string, more: Partial<TaskResult>): TaskResult {
  return { ...succeeded, hostId, hostname, error: null, duration: 1_500, ...more }
}

async function openTask(
  t: ExecutionContext,
  results: readonly TaskResult[],
  status: Task['status'] = 'RUNNING',
) {
  const did: string[] = []
  const output = [
    {
      id: 1,
      hostId: 1,
      hostname: 'web1',
      stream: 'stdout',
      sequence: 0,
      timestamp: '',
      data: 'all is well\n',
    },
    {
      id: 2,
      hostId: 2,
      hostname: 'web2',
      stream: 'stderr',
      sequence: 0,
      timestamp: '',
      data: 'disk is full\n',
    },
    {
      id: 3,
      hostId: 10,
      hostname: 'web10',
      stream: 'stdout',
      sequence: 0,
      timestamp: '',
      data: '漢字 is well\n',
    },
  ] as const
  const reader = new LogReader({
    page: async ({ hostId, stream, after = 0 }) => ({
      taskId: 't',
      entries: output.filter(
        (entry) =>
          entry.id > after &&
          (hostId ?? entry.hostId) === entry.hostId &&
          (stream ?? entry.stream) === entry.stream,
      ),
      next: 3,
      previous: 0,
    }),
    changed: () => undefined,
    failed: (error) => t.fail(String(error)),
  })
  const state = new TaskState('task-1')
  const view = new TaskView(state, reader, {
    cancel: () => did.push('cancel'),
    retry: () => did.push('retry'),
    terminal: (id) => did.push(`terminal ${id}`),
    back: () => did.push('back'),
  })
  const summary = {
    ...endedTask,
    taskId: 'task-1',
    status,
    hostCount: results.length,
  }
  state.read({ ...summary, params: {}, duration: 2_500, results: [...results] })
  const screen = (size = usual) => screenOf(view.frame(size, now))
  const press = (...names: string[]) => {
    for (const name of names) view.key({ name, text: name.length === 1 ? name : null })
  }
  screen()
  await until('the log is read', () => reader.isLoaded)
  const settled = async () => {
    screen()
    await until('the selection is read', () => reader.isLoaded && reader.searching === null)
    return screen()
  }
  return { state, view, did, screen, press, settled }
}

const fleet = [
  resultOf(1, 'web1', { status: 'SUCCESS' }),
  resultOf(10, 'web10', { status: 'RUNNING', startedAt: '2026-03-02T09:58:55.000Z', duration: null }),
  resultOf(2, 'web2', { status: 'FAILED', exitCode: 3, error: 'the disk is full' }),
  resultOf(3, 'web3', { status: 'PENDING', duration: null }),
]

test('a task shows failures first, its counts and the log of all hosts, or of the chosen one', async (t) => {
  const { screen, press, settled } = await openTask(t, fleet)
  const shown = screen()
  t.regex(shown[0] ?? '', /^ .*task-1 +RUNNING +\S+$/)
  t.regex(shown[1] ?? '', /2\/4 done {2}1 failed {2}1 running {2}1 pending {2}1 success$/)
  t.deepEqual(
    shown.slice(3, 8).map((line) => (line.split('│')[0] ?? '').replace(/ +/g, ' ').trimEnd()),
    [' all hosts 4', '✗ web2 exit 3 1.5s', '▸ web10 RUNNING 1m05s', '· web3 PENDING', '✓ web1 SUCCESS 1.5s'],
  )
  t.deepEqual(
    shown.slice(3, 6).map((line) => (line.split('│')[1] ?? '').trimEnd()),
    ['  web1  all is well', '! web2  disk is full', '  web10 漢字 is well'],
  )
  press('tab', 'g')
  t.regex(screen()[2] ?? '', /F follows$/, 'the title describes the pane')
  press('tab', 'j')
  const chosen = await settled()
  t.regex(chosen[2] ?? '', /web2 exit 3/)
  t.deepEqual(
    chosen.slice(3, 5).map((line) => line.split('│')[1]),
    ['  the disk is full', '! disk is full'],
  )
  press('s')
  t.regex((await settled())[4] ?? '', /no output yet$/)
})

test('keys search, filter, show errors, copy and show help, and y answers questions', async (t) => {
  const { screen, press, settled, did, view } = await openTask(t, fleet)
  const foot = () => screen().at(-1) ?? ''
  press('/', 'W', 'E', 'L', 'L', 'enter')
  t.regex((await settled())[2] ?? '', /\/WELL.*F follows/)
  const marked = view.frame(usual, now).rows.flatMap((row) => row.flatMap(({ spans }) => spans))
  t.deepEqual(
    marked.filter(({ text, style }) => text === 'well' && style?.inverse === true).map(({ text }) => text),
    ['well', 'well'],
  )
  press('/', 'x', 'y', 'enter')
  await settled()
  t.is(foot(), ' not found: xy')
  press('escape', 'f', 'w', 'e', 'b', '1', 'enter')
  t.regex(screen()[2] ?? '', /Hosts 2 of 4 with web1/)
  press('escape', 'e')
  await settled()
  t.regex(screen()[2] ?? '', /web2/)
  press('t')
  t.deepEqual(did, ['terminal 2'])
  press('y')
  const copying = view.frame(usual, now)
  t.true(view.isCopying)
  t.false(copying.mouse)
  t.deepEqual(screenOf(copying).slice(0, 2), ['disk is full', ''])
  press('q', '?')
  t.regex(screen().join('\n'), /Keys of a task/)
  press('x', 'c')
  t.regex(foot(), /cancel this task\? 1 running and 1 waiting/)
  press('n')
  t.is(foot(), ' nothing was changed')
  press('c', 'y', 'escape')
  t.deepEqual(did, ['terminal 2', 'cancel', 'back'])
  press('r')
  t.regex(foot(), /still running/)
})

test('a finished task can be retried if hosts failed, and not otherwise', async (t) => {
  const failed = await openTask(t, fleet.slice(2, 3), 'FAILED')
  failed.press('r', 'y')
  t.deepEqual(failed.did, ['retry'])
  const fine = await openTask(t, fleet.slice(0, 1), 'SUCCESS')
  fine.press('r', 'c')
  t.deepEqual(fine.did, [])
  t.regex(fine.screen().at(-1) ?? '', /has ended: SUCCESS/)
})

test('the chosen host stays chosen when other hosts fail; late reads do not undo newer states', async (t) => {
  const { state, screen, press } = await openTask(t, fleet)
  press('j', 'j')
  t.regex(screen()[2] ?? '', /web10/)
  state.result(resultOf(1, 'web1', { status: 'FAILED', exitCode: 1 }))
  t.regex(screen()[2] ?? '', /web10/)
  state.result(resultOf(1, 'web1', { status: 'RUNNING' }))
  t.regex(screen()[4] ?? '', /^✗ web1 /)
  const running = state.summary as TaskSummary
  state.change({ status: 'FAILED', duration: 7_000 })
  state.read({ ...running, params: {}, results: [resultOf(77, 'web77', { status: 'SUCCESS' })] })
  t.like(state, { isRunning: false, summary: { status: 'FAILED', duration: 7_000 } })
  t.is(state.results.get(77)?.hostname, 'web77')
})

test('a frame fits every size', async (t) => {
  const { view } = await openTask(t, [
    ...fleet,
    resultOf(77, `${'a'.repeat(200)}.example`, { status: 'LOST', error: 'x'.repeat(500) }),
  ])
  for (const cols of [1, 5, 12, 20, 49, 50, 80, 200])
    for (const rows of [1, 2, 5, 6, 24])
      for (const name of ['tab', '?', 'x', 'y', 'y']) {
        view.key({ name, text: null })
        const frame = view.frame({ cols, rows }, now)
        t.true(frame.rows.length <= rows, `${cols}x${rows}`)
        for (const row of frame.rows)
          for (const { at, spans } of row)
            t.true(
              at + widthOf(spans.map((span) => span.text).join('')) <= cols,
              `${cols}x${rows} ${paintRow(row, false)}`,
            )
      }
})

test('A14 the fleet shows an ONLINE host without a link as NO LINK, with reason and duration', (t) => {
  const state = new FleetState()
  const nothing = () => undefined
  const view = new FleetView(state, 'here', {
    openTask: nothing,
    tasksOf: nothing,
    terminal: nothing,
    run: nothing,
    examine: nothing,
  })
  const gone = { ...healthyAgent, connected: false, reachable: false, linkLostAt: '2026-03-02T09:58:00.000Z' }
  const statusReason = 'its agent was stopped 1 s ago'
  state.readHosts([
    { ...healthyHost, id: 1, hostname: 'db1', status: 'ONLINE', statusReason: null },
    { ...healthyHost, id: 2, hostname: 'web1', status: 'ONLINE', statusReason, agent: gone },
  ])
  const screen = () => screenOf(view.frame({ cols: 120, rows: 14 }, now))
  screen()
  view.key({ name: 'j', text: null })
  const shown = screen()
  t.regex(shown[1] ?? '', /2 hosts {2}1 NO LINK {2}1 ONLINE$/)
  t.regex(shown[4] ?? '', /web1 +NO LINK +2m00s/)
  t.regex(shown[3] ?? '', / NO LINK: its agent was stopped 2 min ago/)
})

test('the fleet at 80 columns counts filtered-out hosts; d examines the chosen host, and f stays in the footer', (t) => {
  const state = new FleetState()
  const nothing = () => undefined
  const examined: (number | null)[] = []
  const view = new FleetView(state, 'here', {
    openTask: nothing,
    tasksOf: nothing,
    terminal: nothing,
    run: nothing,
    examine: (_columns, hostId) => examined.push(hostId),
  })
  const away = { status: 'OFFLINE', agent: null } as const
  const read = (...others: Host[]) =>
    state.readHosts([{ ...healthyHost, id: 1, hostname: 'web1', status: 'ONLINE' }, ...others])
  const foot = () => screenOf(view.frame(usual, now)).at(-1) ?? ''
  const press = (...names: string[]) => {
    for (const name of names) view.key({ name, text: name.length === 1 ? name : null })
  }
  read({ ...healthyHost, id: 2, hostname: 'db2', ...away })
  t.regex(foot(), /d doctor {2}t terminal {2}f filter {2}Tab switch$/)
  press('d', 'f', 'w', 'e', 'b', 'enter', 'e')
  t.is(foot(), ' every host shown is ONLINE; 1 hidden by the filter is not: Esc')
  press('escape', 'e', 'd')
  t.deepEqual(examined, [null, 2])
  press('e')
  t.is(foot(), ' every other host shown is ONLINE')
  read()
  press('e')
  t.is(foot(), ' every host is ONLINE')
})

test('the fleet lists hosts that are not ONLINE first; Enter opens a task of the chosen host', (t) => {
  const state = new FleetState()
  const did: string[] = []
  const view = new FleetView(state, 'http://127.0.0.1:18080', {
    openTask: (taskId, hostId) => did.push(`open ${taskId} ${hostId}`),
    tasksOf: (hostId) => did.push(`tasks of ${hostId}`),
    terminal: (hostId) => did.push(`terminal ${hostId}`),
    run: (command, hostIds) => did.push(`run ${command} on ${hostIds.join()}`),
    examine: () => did.push('examine'),
  })
  const press = (...names: string[]) => {
    for (const name of names) view.key({ name, text: null })
  }
  const screen = () => screenOf(view.frame({ cols: 120, rows: 14 }, now))
  t.regex(screen()[2] ?? '', /reading/)
  const at = '2026-03-02T09:59:00.000Z'
  const agent = { ...healthyAgent, lastHeartbeatAt: at }
  state.readHosts([
    { ...healthyHost, id: 1, hostname: 'db1', status: 'ONLINE', statusReason: null, agent },
    { ...healthyHost, id: 2, hostname: 'web1', status: 'OFFLINE', statusReason: 'never heard', agent: null },
    {
      ...healthyHost,
      id: 3,
      hostname: 'web2',
      status: 'OFFLINE',
      statusReason: 'no heartbeat for 60 s',
      agent,
    },
  ])
  t.regex(screen().join('\n'), /no tasks yet/)
  const event = { id: 'x-1', type: 'task', change: 'created', at } as const
  t.false(state.apply({ ...event, task: { ...endedTask, taskId: 'old' } }))
  t.false(
    state.apply({
      ...event,
      task: { ...endedTask, taskId: 'new', status: 'RUNNING', scriptName: null, firstLine: 'df -h' },
    }),
  )
  const shown = screen()
  t.regex(shown[1] ?? '', /3 hosts {2}2 OFFLINE {2}1 ONLINE$/)
  t.regex(shown[4] ?? '', /^✗ web1 +OFFLINE +never/)
  t.regex(shown[5] ?? '', /^✗ web2 +OFFLINE +1m00s/)
  t.regex(shown[6] ?? '', /^✓ db1 +ONLINE +│/)
  t.regex(shown[3] ?? '', /RUNNING.* df -h +new {2}admin$/)
  t.regex(shown[4] ?? '', /SUCCESS.* deploy +old {2}admin$/)
  press('j')
  t.regex(screen()[3] ?? '', /OFFLINE: never heard/)
  t.deepEqual(did, ['tasks of 2'])
  const ran = { ...endedTask, taskId: 'new', status: 'RUNNING' } as const
  state.apply({ ...event, change: 'updated', task: { ...ran, status: 'FAILED' } })
  state.readTasks([ran, { ...ran, taskId: 'own' }], 2)
  t.deepEqual(
    state.tasks.map(({ taskId, status }) => `${taskId} ${status}`),
    ['new FAILED', 'own RUNNING'],
    'late reads do not undo newer states',
  )
  state.readTasks([{ ...endedTask, taskId: 'own' }], 2)
  t.true(
    state.apply({ ...event, task: { ...endedTask, taskId: 'newer' } }),
    'the hosts of the task are requested',
  )
  press('enter', 't')
  t.deepEqual(did.slice(1), ['open own 2', 'terminal 2'])
  state.apply({ id: 'x-2', type: 'host', change: 'removed', at, host: { id: 2 } })
  t.notRegex(screen().join('\n'), /web1 +OFFLINE/)
})

test('the title of a task omits everything else before the id, and the id before the status', async (t) => {
  const { state, screen } = await openTask(t, fleet)
  const taskId = '01M7ZEF5G74K5B44GT1WC0PYME'
  const told: Partial<TaskSummary> = {
    scriptName: null,
    firstLine: `apt-get install --yes ${'x'.repeat(58)}…`,
    strategy: 'ROLLING',
    batchSize: [1, '10%', '50%'],
    createdBy: 'nightly-maintenance',
  }
  state.change({ ...told, taskId })
  const head = new TaskState(taskId)
  head.read({ ...(state.summary as TaskSummary), taskId, params: {}, results: [] })
  const title = (cols: number) => screenOf({ rows: [taskTitle(head, cols, now)], mouse: false })[0] ?? ''
  t.regex(title(200), /^ apt-get install .*… {2}ROLLING by 1, 10%, 50%, by nightly-maintenance {2}01M7/)
  for (const cols of [60, 80, 100, 120, 200])
    t.regex(title(cols), new RegExp(`^ apt-get.* {2}${taskId} +RUNNING {2}\\S+$`), `${cols}`)
  t.regex(title(30), /RUNNING {2}\S+$/)
  t.regex(screen({ cols: 120, rows: 14 })[0] ?? '', /apt-get/)
})

test('times are short', (t) => {
  const cases: [number, string][] = [
    [0, '0.0s'],
    [9_950, '9.9s'],
    [59_900, '59s'],
    [185_000, '3m05s'],
    [7_620_000, '2h07m'],
    [400_000_000, '4d'],
    [-5, '0.0s'],
  ]
  for (const [milliseconds, short] of cases) t.is(shortTime(milliseconds), short)
})

test('A16 the screen of all hosts lists in one line the hosts that the task waits for', async (t) => {
  const error = 'its agent is not connected; waiting up to 2 min (--queue)'
  const waiting = (id: number) => resultOf(id, `web${id}`, { status: 'PENDING', duration: null, error })
  const { screen } = await openTask(t, [...fleet.slice(0, 1), ...[4, 5, 6].map(waiting)])
  t.regex(
    screen({ cols: 120, rows: 14 }).join('\n'),
    /web\[4-6\] \(3 hosts\): its agent is not connected; waiting up to/,
  )
})

const leftOf = (rows: readonly string[]) => (rows[3] ?? '').indexOf('│')

test('A16 the host list is as wide as most names need, and the log gets the rest', async (t) => {
  const few = await openTask(t, fleet)
  t.true(leftOf(few.screen({ cols: 80, rows: 24 })) <= 26)
  const odd = `ip-10-0-0-1.${'a'.repeat(84)}`
  const names = [...Array.from({ length: 40 }, (_, at) => `web${100 + at}`), odd]
  const many = await openTask(
    t,
    names.map((name, at) => resultOf(at + 1, name, { status: 'SUCCESS' })),
    'SUCCESS',
  )
  const shown = many.screen({ cols: 160, rows: 50 })
  t.true(leftOf(shown) <= 26, 'one long name does not widen the list')
  t.regex(shown.join('\n'), /✓ ip-1…? SUCCESS|✓ ip-10… SUCCESS/)
  const long = await openTask(
    t,
    names
      .slice(0, 40)
      .map((name, at) => resultOf(at + 1, `${name}.rack7.example.org`, { status: 'SUCCESS' })),
    'SUCCESS',
  )
  t.true(leftOf(long.screen({ cols: 80, rows: 24 })) <= 32, 'the log has most of 80 columns')
  t.regex(long.screen({ cols: 120, rows: 40 }).join('\n'), /web100\.rack7\.example\.org SUCCESS/)
})

test("A16 a task's row shows its age, its user and the end of its id, at 80 columns too", (t) => {
  const state = new FleetState()
  const nothing = () => undefined
  const view = new FleetView(state, 'x', {
    openTask: nothing,
    tasksOf: nothing,
    terminal: nothing,
    run: nothing,
    examine: nothing,
  })
  state.readHosts([{ ...healthyHost, hostname: 'db1', status: 'ONLINE' }])
  const createdAt = '2026-03-02T09:58:45.000Z'
  const scriptName = 'a script with a long name that has to give way'
  state.readTasks(
    [{ ...endedTask, taskId: '01M7ZEF5G74K5B44GT1WC0PYME', createdAt, scriptName, createdBy: 'ann' }],
    null,
  )
  const row = (cols: number) => screenOf(view.frame({ cols, rows: 24 }, now))[3] ?? ''
  t.regex(row(80), /1m15s ago {2}a script .*… {2}C0PYME {2}ann$/)
  t.regex(row(120), /1m15s ago {2}a script .* {2}C0PYME {2}ann$/)
})

test('A16 copy mode shows the log as soon as it is read, and then does not change', async (t) => {
  const { view, screen, press, settled } = await openTask(t, fleet)
  press('s', 's', 'y')
  screen()
  t.false(view.isCopying, 'nothing to select yet')
  t.is((await settled())[0], 'web2: disk is full')
  t.true(view.isCopying)
  press('y')
  t.regex(screen()[2] ?? '', /stderr only/)
})

/** A key for each letter. */
const typed = (text: string) => text.split('')

function openFleet(hosts: readonly (readonly [name: string, status: Host['status']])[]) {
  const state = new FleetState()
  const did: string[] = []
  const view = new FleetView(state, 'http://127.0.0.1:18080', {
    openTask: (taskId) => did.push(`open ${taskId}`),
    tasksOf: () => undefined,
    terminal: () => undefined,
    run: (command, hostIds) => did.push(`run ${command} on ${hostIds.join(' ')}`),
    examine: (columns) => did.push(`examine ${columns}`),
  })
  state.readHosts(
    hosts.map(([hostname, status], at) => ({
      ...healthyHost,
      id: at + 1,
      hostname,
      status,
      agent: { ...healthyAgent, reachable: status !== 'OFFLINE' },
    })),
  )
  state.readTasks([], null)
  const screen = (size = usual) => screenOf(view.frame(size, now))
  const press = (...names: string[]) => {
    for (const name of names) {
      view.key({ name, text: name.length === 1 ? name : null })
      screen()
    }
  }
  screen()
  return { state, view, did, screen, press }
}

test('A16 a command runs on the filtered hosts or the chosen host once y confirms it', (t) => {
  const hosts = [
    ['web1', 'ONLINE'],
    ['web2', 'OFFLINE'],
    ['db1', 'ONLINE'],
  ] as const
  const { press, screen, did, view } = openFleet(hosts)
  press('f', 'w', 'e', 'b', 'enter', 'x')
  t.is(screen().at(-1), 'run on 2 hosts:')
  press(...typed('uptime'), 'enter')
  t.true(view.isTyping, 'q answers the question and does not quit')
  for (const size of [usual, { cols: 120, rows: 40 }]) {
    const box = screen(size).join('\n')
    t.regex(box, /│ Run on 2 hosts of http:\/\/127\.0\.0\.1:18080\? +│/)
    t.regex(
      box,
      /│ uptime +│[^]*│ web\[1-2\] +│[^]*│ 1 of them can't be reached now +│[^]*│ y {2}run it; any other key cancels +│/,
    )
  }
  press('q')
  t.is(screen().at(-1), ' nothing was started')
  t.deepEqual(did, [])
  press('x', ...typed('uptime'), 'enter', 'y')
  press('escape', 'end', 'x', ...typed('id'), 'enter', 'y')
  t.deepEqual(did.toSorted(), ['run id on 1', 'run uptime on 2 1'])
  press('home', 'x', 'enter', 'x', 'escape')
  t.false(view.isTyping, 'an empty command asks nothing')
})

test('A16 tasks are filtered by command, user and status; Esc shows all again', (t) => {
  const { state, press, screen } = openFleet([['web1', 'ONLINE']])
  state.readTasks(
    [
      { ...endedTask, taskId: 'AAAAAA', scriptName: 'deploy', createdBy: 'ann', status: 'FAILED' },
      {
        ...endedTask,
        taskId: 'BBBBBB',
        scriptName: null,
        firstLine: 'df -h',
        createdBy: 'bob',
        status: 'SUCCESS',
      },
    ],
    null,
  )
  press('tab', 'f', ...typed('DF'), 'enter')
  t.regex(screen()[2] ?? '', /Tasks 1 of 2 with DF/)
  t.regex(screen().join('\n'), /df -h/)
  t.notRegex(screen().join('\n'), /deploy/)
  press('f', 'C-u', ...typed('failed'), 'enter')
  t.regex(screen().join('\n'), /deploy/)
  press('f', 'C-u', ...typed('bob'), 'enter')
  t.regex(screen().join('\n'), /BBBBBB/)
  press('escape')
  t.regex(screen().join('\n'), /deploy[^]*df -h/)
})

test('A16 the doctor of the fleet opens a box; some keys scroll it, any other closes it', (t) => {
  const { press, screen, did, view } = openFleet([['web1', 'ONLINE']])
  press('d')
  t.deepEqual(did, ['examine 74'])
  view.show(
    doctorLines(
      [
        '\u001b[31merror\u001b[39m    web1: no agent',
        ...Array.from({ length: 30 }, (_, at) => `line ${at}`),
      ].join('\n'),
      74,
    ),
  )
  t.regex(screen().join('\n'), /error +web1: no agent[^]*line 8 /)
  press('G')
  t.regex(screen().join('\n'), /line 29/)
  press('q')
  t.notRegex(screen().join('\n'), /line 29/)
})

test('A16 b shows equal output once under its hosts, largest group first; b again shows the log', async (t) => {
  const { screen, press, settled } = await openTask(t, [
    ...fleet,
    resultOf(11, 'web11', { status: 'SUCCESS' }),
  ])
  press('j', 'b')
  screen()
  await until('equal output is folded', () => /equal output once/.test(screen()[2] ?? ''))
  t.deepEqual(
    screen()
      .slice(3, 10)
      .map((line) => (line.split('│')[1] ?? '').trimEnd()),
    ['web1', '  all is well', 'web2', '! disk is full', 'web10', '  漢字 is well', 'no output: web[3,11]'],
  )
  press('/', ...typed('FULL'), 'enter')
  await settled()
  t.regex(screen().at(-1) ?? '', /q quit/)
  press('b')
  t.regex((await settled())[2] ?? '', /all hosts .*following/)
})

test("a task's bar counts hosts by the states in the list; the cancel notice disappears when the task ends", async (t) => {
  const cancelled = (id: number, status: TaskResult['status']) => resultOf(id, `web${id}`, { status })
  const verify = { status: 'FAILED', exitCode: 1, attempts: 1 } as const
  const failed = resultOf(3, 'web3', {
    status: 'FAILED',
    exitCode: 1,
    error: 'verification failed: exit code 1',
    verify,
    rollback: { status: 'SUCCESS', exitCode: 0 },
  })
  const { state, view, screen } = await openTask(t, [
    cancelled(1, 'CANCELLED'),
    cancelled(2, 'SKIPPED'),
    failed,
  ])
  view.sayOfRun('the task is being cancelled')
  t.is(screen().at(-1), ' the task is being cancelled')
  t.regex(screen()[1] ?? '', /3\/3 done {2}1 failed {2}1 cancelled {2}1 skipped$/)
  t.regex(screen()[4] ?? '', /^✗ web3 +verify failed/)
  view.key({ name: 'j', text: null })
  view.sayOfRun('the task is being cancelled')
  t.regex(screen()[3] ?? '', / verification failed: exit code 1; rolled back/)
  state.change({ status: 'CANCELLED' })
  t.notRegex(screen().at(-1) ?? '', /being cancelled/)
})
