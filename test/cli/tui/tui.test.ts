import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import type { Frame, Screen, ScreenListener } from '../../../src/cli/tui/screen/screen.ts'
import { Tui, type TuiOptions } from '../../../src/cli/tui/tui.ts'
import { openClient } from '../../../src/client/client.ts'
import {
  envelope,
  eventStream,
  hostNamed,
  pageOf,
  resultOf,
  startFakeServer,
  taskOf,
} from '../../fixtures/fake-server.ts'
import { until } from '../../helpers/until.ts'

type Routes = Parameters<typeof startFakeServer>[1]

const running = taskOf([resultOf('web1', { status: 'RUNNING' })], { status: 'RUNNING' })
const ready = (response: ServerResponse) => eventStream(response)('ready', { id: '1' }, '1')

/** Opens `rsm tui` on a screen without a terminal, with a server of these routes. */
async function openTui(
  t: ExecutionContext,
  routes: Routes,
  taskId: string | null,
  runTerminal: TuiOptions['runTerminal'] = async () => null,
) {
  const server = await startFakeServer(t, routes)
  const calls: string[] = []
  const last: { frame: Frame } = { frame: { rows: [], mouse: false } }
  const openScreen = (listener: ScreenListener): Screen => ({
    size: { cols: 100, rows: 20 },
    isReady: true,
    draw(frame) {
      last.frame = frame
    },
    enter() {
      calls.push('enter')
      listener.resized()
    },
    leave: () => calls.push('leave'),
    suspend: () => calls.push('suspend'),
    redraw: () => listener.resized(),
    close: () => calls.push('close'),
  })
  const client = await openClient({ url: server.url })
  const examine = async () => 'error    web1: its clock is wrong\nproblems found'
  const tui = new Tui({ client, taskId, openScreen, runTerminal, examine })
  const press = (...names: string[]) => {
    for (const name of names) tui.key({ name, text: name })
  }
  const shows = (text: string) =>
    until(text, () =>
      last.frame.rows.some((row) => row.some(({ spans }) => spans.some((span) => span.text.includes(text)))),
    )
  return { tui, server, calls, press, shows }
}

/** A handler that never answers, and a wait until its clients have disconnected. */
function silence() {
  const given: Promise<unknown>[] = []
  const handler = (_seen: unknown, response: ServerResponse) => {
    given.push(once(response, 'close'))
    return undefined
  }
  /** Resolves once no client waits any more. `until` ends sooner than a call, which waits a minute. */
  const left = async () => {
    let isLeft = false
    void Promise.all(given).then(() => {
      isLeft = true
    })
    await until('no client waits any more', () => isLeft)
  }
  return { handler, given, left }
}

const hung: readonly {
  readonly title: string
  readonly taskId: string | null
  readonly asks: number
  readonly routes: (silent: ReturnType<typeof silence>['handler']) => Routes
}[] = [
  { title: 'the fleet', taskId: null, asks: 1, routes: (silent) => ({ 'GET /api/events': silent }) },
  {
    title: 'the fleet with its events alone',
    taskId: null,
    asks: 2,
    routes: (silent) => ({
      'GET /api/events': (_seen, response) => ready(response),
      'GET /api/hosts': silent,
      'GET /api/tasks': silent,
    }),
  },
  {
    title: 'a task',
    taskId: 'task-1',
    asks: 1,
    routes: (silent) => ({ 'GET /api/tasks/task-1': silent }),
  },
  {
    title: 'a task with its results alone',
    taskId: 'task-1',
    asks: 2,
    routes: (silent) => ({ 'GET /api/tasks/task-1': () => running, 'GET /api/tasks/task-1/logs': silent }),
  },
]
for (const { title, taskId, asks, routes } of hung)
  test(`quitting does not wait for a server that hangs: ${title}`, async (t) => {
    const { handler, given, left } = silence()
    const { tui, press } = await openTui(t, routes(handler), taskId)
    const ended = tui.run()
    await until('the server is asked', () => given.length >= asks)
    press('q')
    t.like(await ended, { exit: 0 })
    await left()
  })

test('a cancellation just before quitting reaches the server, and its answer is waited for only briefly', async (t) => {
  const reading = silence()
  const cancelling = silence()
  const { tui, press, shows } = await openTui(
    t,
    {
      'GET /api/tasks/task-1': () => running,
      'GET /api/tasks/task-1/logs': reading.handler,
      'POST /api/tasks/task-1/cancel': cancelling.handler,
    },
    'task-1',
  )
  const ended = tui.run()
  await shows('web1')
  press('c', 'y', 'q')
  t.like(await ended, { exit: 0, runningTask: 'task-1' })
  await until('the cancellation has arrived', () => cancelling.given.length === 1)
  await cancelling.left()
  await reading.left()
})

test('a page requested before the stream was cut does not hide the reconnecting notice', async (t) => {
  const pages: ServerResponse[] = []
  const streams: ServerResponse[] = []
  const { tui, press, shows } = await openTui(
    t,
    {
      'GET /api/tasks/task-1': () => running,
      'GET /api/tasks/task-1/logs': ({ query }, response) => {
        if (!query.has('follow')) pages.push(response)
        else if (streams.push(response) === 1) eventStream(response)('task', running)
        return undefined
      },
    },
    'task-1',
  )
  const ended = tui.run()
  await until('the page and the stream are requested', () => pages.length > 0 && streams.length > 0)
  streams[0]?.destroy()
  await shows('trying again')
  const entry = { id: 1, hostId: 1, hostname: 'web1', stream: 'stdout', sequence: 0, data: 'late\n' }
  const data = { taskId: 'task-1', entries: [entry], next: 1, previous: 0 }
  for (const page of pages) envelope(page, 200, { data })
  await shows('late')
  await shows('trying again')
  press('q')
  t.like(await ended, { exit: 0 })
})

test('output stored without a stream is read once the task is followed, and again after a reconnect', async (t) => {
  const streams: ServerResponse[] = []
  const log: object[] = []
  const store = (data: string) => {
    const id = log.length + 1
    log.push({ id, hostId: 1, hostname: 'web1', stream: 'stdout', sequence: id - 1, timestamp: '', data })
  }
  const { tui, press, shows } = await openTui(
    t,
    {
      'GET /api/tasks/task-1': () => running,
      'GET /api/tasks/task-1/logs': ({ query }, response) => {
        if (query.has('follow')) {
          streams.push(response)
          return undefined
        }
        const after = Number(query.get('after') ?? 0)
        // One entry at a time, as if a page did not hold the whole log.
        const entries = log.slice(after, after + 1)
        return { taskId: 'task-1', entries, next: after + entries.length, previous: 0 }
      },
    },
    'task-1',
  )
  const ended = tui.run()
  await shows('no output yet')
  await until('the task is followed', () => streams.length === 1)
  store('before the stream\n')
  const first = streams[0] as ServerResponse
  eventStream(first)('task', running)
  await shows('before the stream')
  first.destroy()
  await shows('trying again')
  store('in the gap\n')
  store('at its end, in the middle of a line')
  await until('the task is followed again', () => streams.length === 2)
  eventStream(streams[1] as ServerResponse)('task', running)
  await shows('in the gap')
  await shows('at its end')
  press('q')
  t.like(await ended, { exit: 0 })
})

test('an error while a session has the terminal ends the TUI after the session, without redrawing the screen', async (t) => {
  const session = { end: () => undefined as void }
  const streams: ServerResponse[] = []
  const { tui, server, calls, press, shows } = await openTui(
    t,
    {
      'GET /api/tasks/task-1': () => running,
      'GET /api/tasks/task-1/logs': ({ query }, response) => {
        if (!query.has('follow')) return { taskId: 'task-1', entries: [], next: 0, previous: 0 }
        streams.push(response)
        if (streams.length > 1) return envelope(response, 410, {})
        return eventStream(response)('task', running)
      },
    },
    'task-1',
    () => new Promise((resolve) => (session.end = () => resolve(null))),
  )
  const ended = t.throwsAsync(tui.run(), { code: 'gone' })
  await shows('web1')
  await until('the task is followed', () => streams.length > 0)
  // The last key is for the session that has the terminal.
  press('j', 't', 'q')
  streams[0]?.end()
  await until('the stream is refused', () => streams[1]?.writableFinished === true)
  // Wait until later responses have arrived too.
  await (await fetch(`${server.url}/api/tasks/task-1`)).text()
  for (let at = 0; at < 10; at++) await turn()
  t.deepEqual(calls, ['enter', 'leave'])
  session.end()
  await ended
  t.deepEqual(calls, ['enter', 'leave', 'close'])
})

test('a signal ends the wait for a session that does not start, and then the TUI', async (t) => {
  const { tui, calls, press, shows } = await openTui(
    t,
    {
      'GET /api/tasks/task-1': () => running,
      'GET /api/tasks/task-1/logs': () => ({ taskId: 'task-1', entries: [], next: 0, previous: 0 }),
    },
    'task-1',
    (_hostId, signal) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(new DOMException('given up', 'AbortError'))),
      ),
  )
  const ended = tui.run()
  await shows('web1')
  press('j', 't')
  tui.gone()
  t.like(await ended, { exit: 129 })
  t.deepEqual(calls, ['enter', 'leave', 'close'])
})

test('A16 keys pressed before the first data arrives act on it', async (t) => {
  let come = () => {}
  const comes = new Promise<void>((resolve) => {
    come = resolve
  })
  const log = { taskId: 'task-1', entries: [], next: 0, previous: 0 }
  const summary = { ...running, taskId: 'task-1' }
  const { tui, press, shows, server } = await openTui(
    t,
    {
      'GET /api/events': (_seen, response) => ready(response),
      'GET /api/hosts': async () => {
        await comes
        return pageOf([hostNamed(1, 'web1'), hostNamed(2, 'web2')])
      },
      'GET /api/tasks': ({ query }) =>
        pageOf([query.get('hostId') === '2' ? { ...summary, taskId: 'task-2' } : summary]),
      'GET /api/tasks/task-2': () => ({ ...running, taskId: 'task-2' }),
      'GET /api/tasks/task-2/logs': () => log,
    },
    null,
  )
  const ended = tui.run()
  await shows('reading')
  press('j', 'j', 'enter')
  come()
  await until('the task of web2 is open', () => server.seen.some(({ path }) => path === '/api/tasks/task-2'))
  t.false(server.seen.some(({ path }) => path === '/api/tasks/task-1'))
  press('q')
  t.like(await ended, { exit: 0 })
})
