import test, { type ExecutionContext } from 'ava'
import type { Frame, ScreenListener } from '../../../src/cli/tui/screen/screen.ts'
import { Tui } from '../../../src/cli/tui/tui.ts'
import { openClient } from '../../../src/client/client.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const size = { cols: 80, rows: 14 }

/** Opens a task on a screen without a terminal. */
async function openTui(t: ExecutionContext, { url }: TestServer, token: string, taskId: string) {
  let shown = ''
  let listener: ScreenListener | undefined
  const tui = new Tui({
    client: await openClient({ url, token }),
    taskId,
    openScreen: (heard) => {
      listener = heard
      return {
        size,
        isReady: true,
        draw: ({ rows }: Frame) => {
          shown = rows
            .map((row) => row.map(({ spans }) => spans.map(({ text }) => text).join('')).join(''))
            .join('\n')
        },
        enter: () => heard.resized(),
        leave: () => {},
        suspend: () => {},
        redraw: () => {},
        close: () => {},
      }
    },
    runTerminal: async () => null,
    examine: async () => '',
  })
  const left = tui.run()
  const press = (...names: string[]) => {
    for (const name of names) listener?.key({ name, text: name.length === 1 ? name : null })
  }
  t.teardown(async () => {
    press('C-c')
    await left
  })
  const shows = (pattern: RegExp) =>
    until(`the screen shows ${pattern}`, async () => pattern.test(shown)).catch(() => {
      throw new Error(`not ${pattern}:\n${shown}`)
    })
  return { press, shows, left }
}

async function serverWithTask(t: ExecutionContext, options: object) {
  const server = await startTestServer(t)
  const { id } = await server.data('POST', '/api/hosts', { hostname: 'away', ip: '192.0.2.1' })
  const script = { content: 'true' }
  const body = { script, target: { hostIds: [id] }, async: false, ...options }
  return { server, taskId: (await server.data('POST', '/api/tasks', body)).taskId as string }
}

test('a VIEWER sees that cancelling and retrying are not allowed, and the TUI stays open', async (t) => {
  const { server, taskId } = await serverWithTask(t, { async: true, queueSeconds: 3_600 })
  const { token } = await server.data('POST', '/api/tokens', { name: 'viewer', role: 'VIEWER' })
  const { press, shows, left } = await openTui(t, server, token, taskId)
  await shows(/1 pending/)
  press('M-q', 'M-c', 'M-y', 'c')
  await shows(/cancel this task\?/)
  press('y')
  await shows(/\n you are admin \(ADMIN, by a token as VIEWER\); this requires OPERATOR[^\n]*$/)
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  await shows(/CANCELLED[^]*1 cancelled/)
  press('r')
  await shows(/run it again on 1 host/)
  press('y')
  await shows(/\n you are admin \(ADMIN, by a token as VIEWER\); this requires OPERATOR[^\n]*$/)
  press('q')
  t.deepEqual(await left, { exit: 0, runningTask: null })
})

test('a task with secret params is not retried without them; the complete command that asks for them is shown', async (t) => {
  const { server, taskId } = await serverWithTask(t, { secretParams: { PASSWORD: 'x' } })
  const { press, shows } = await openTui(t, server, server.token, taskId)
  await shows(/FAILED/)
  press('r', 'y')
  await shows(new RegExp(`rsm tasks retry ${taskId} *$`))
  t.is((await server.data('GET', '/api/tasks')).totalElements, 1)
})

test('a log that cannot be read is retried until it can, and the error is shown until then', async (t) => {
  const { server, taskId } = await serverWithTask(t, {})
  const { press, shows } = await openTui(t, server, server.token, taskId)
  await shows(/all hosts [^]*no output/)
  await server.stop()
  press('j')
  await shows(/\n cannot reach [^\n]*; trying again *$/)
  await server.restart()
  await shows(/┬ away UNREACHABLE [^]*\n *q quit[^\n]*$/)
  t.pass()
})
