import test, { type ExecutionContext } from 'ava'
import { openClient } from '../../../src/client/client.ts'
import { Attachment, type AttachmentOptions } from '../../../src/net/attachment.ts'
import { sessionId, startFakeTerminal } from '../../helpers/terminals/fake-terminal.ts'
import { until } from '../../helpers/until.ts'

/** An attachment to a fake session, with a record of its callbacks. */
async function attach(t: ExecutionContext, options: Partial<AttachmentOptions> = {}) {
  const server = await startFakeTerminal(t)
  const client = await openClient({ url: server.url, token: 'secret' })
  const told = { output: '', cuts: 0, again: 0, drained: 0 }
  const attachment = new Attachment({
    sessionId,
    watch: false,
    open: client.session(sessionId, false),
    attached: (_, again) => {
      if (again) told.again++
    },
    output(data, shown) {
      told.output += data
      shown()
    },
    resized: () => {},
    notice: () => {},
    refused: () => {},
    cut: () => {
      told.cuts++
    },
    drained: () => {
      told.drained++
    },
    ...options,
  })
  return { server, attachment, told, end: attachment.run() }
}

test('F20 a client that is cut off continues after its last output: nothing is missing or repeated', async (t) => {
  const { server, told, end } = await attach(t)
  const first = await server.client()
  t.is(first.authorization, 'Bearer secret')
  t.is(first.query.toString(), '')
  first.attached()
  first.send('TERMINAL_OUTPUT', { sequence: 0, data: 'a' })
  first.send('TERMINAL_OUTPUT', { sequence: 1, data: 'b' })
  t.is((await first.next('TERMINAL_ACK')).sequence, 1)
  server.refusals.push(503)
  first.socket.terminate()

  const second = await server.client()
  t.is(second.query.get('after'), '1')
  second.attached({ after: 1 })
  second.send('TERMINAL_OUTPUT', { sequence: 1, data: 'b' })
  second.send('TERMINAL_OUTPUT', { sequence: 2, data: 'c' })
  second.send('TERMINAL_CLOSED', { exitCode: 3, signal: null, reason: null })
  t.like(await end, { kind: 'closed', closed: { exitCode: 3 } })
  t.deepEqual(told, { output: 'abc', cuts: 1, again: 1, drained: 0 })
})

test('an acknowledgement lost with its connection is repeated over the next one', async (t) => {
  const { server, end, attachment } = await attach(t)
  const first = await server.client()
  first.attached()
  first.send('TERMINAL_OUTPUT', { sequence: 7, data: 'x' })
  await first.next('TERMINAL_ACK')
  first.socket.terminate()
  const second = await server.client()
  second.attached({ after: 7 })
  t.is((await second.next('TERMINAL_ACK')).sequence, 7)
  attachment.leave()
  await second.next('TERMINAL_CLOSE')
  second.send('TERMINAL_CLOSED', { exitCode: null, signal: 'SIGHUP', reason: null })
  t.deepEqual(await end, { kind: 'left', isReported: true })
})

test('output that was not shown is not acknowledged', async (t) => {
  const shown: (() => void)[] = []
  const { server, attachment } = await attach(t, { output: (_, done) => shown.push(done) })
  const client = await server.client()
  client.attached()
  client.send('TERMINAL_OUTPUT', { sequence: 0, data: 'x'.repeat(200_000) })
  client.send('TERMINAL_OUTPUT', { sequence: 1, data: 'y' })
  await until('both pieces arrive', () => shown.length === 2)
  shown[0]?.()
  t.is((await client.next('TERMINAL_ACK')).sequence, 0)
  attachment.leave()
})

test('input typed during a lost connection is sent afterwards, in order and up to a bound', async (t) => {
  const { server, attachment, told } = await attach(t)
  t.is(attachment.type('typed before '), 'taken')
  const first = await server.client()
  first.attached({ typed: { by: '', count: 0 } })
  const { by, position, data } = await first.next('TERMINAL_INPUT')
  t.deepEqual([position, data], [0, 'typed before '])
  first.socket.terminate()
  await until('the connection is cut', () => told.cuts === 1)
  t.is(attachment.type('one '), 'taken')
  t.is(attachment.type('two'), 'taken')
  t.is(attachment.type('x'.repeat(1024 * 1024)), 'refused')
  t.is(attachment.type('three'), 'refused')
  const second = await server.client()
  second.attached({ typed: null })
  second.send('TERMINAL_TYPED', { by, count: 6 })
  t.is(await second.inputTo('two'), 'before one two')
  attachment.leave()
})

test("the terminal's size is sent again if a lost connection swallowed it", async (t) => {
  const { server, attachment, told } = await attach(t)
  const first = await server.client()
  first.attached()
  attachment.resize(100, 30)
  t.like(await first.next('TERMINAL_RESIZE'), { cols: 100, rows: 30 })
  first.socket.terminate()
  await until('the connection is cut', () => told.cuts === 1)
  attachment.resize(90, 20)
  const second = await server.client()
  second.attached({ cols: 100, rows: 30 })
  t.like(await second.next('TERMINAL_RESIZE'), { cols: 90, rows: 20 })
  attachment.leave()
})

const ends: [string, (client: { close(code: number): void }) => void, RegExp][] = [
  ['another client has taken it over', (socket) => socket.close(4409), /taken over the session/],
  ['its login has ended', (socket) => socket.close(4401), /login or token has ended/],
]
for (const [title, act, message] of ends)
  test(`a session is lost at once, without reconnecting, when ${title}`, async (t) => {
    const { server, end, told } = await attach(t)
    const client = await server.client()
    client.attached()
    act(client.socket)
    const ended = await end
    t.is(ended.kind, 'lost')
    if (ended.kind === 'lost') t.regex(ended.error.message, message)
    t.is(told.cuts, 0)
  })

test("a session that no longer exists when its client reconnects is lost, with the server's message", async (t) => {
  const { server, end } = await attach(t)
  const client = await server.client()
  client.attached()
  server.refusals.push(404)
  client.socket.terminate()
  t.like(await end, { kind: 'lost', error: { code: 'not_found', message: 'refused with 404' } })
})

test('a session that ends while its client reconnects is lost, without another attempt', async (t) => {
  const { server, end } = await attach(t)
  const first = await server.client()
  first.attached()
  first.socket.terminate()
  const second = await server.client()
  second.send('ERROR', { code: 410, message: 'the session has ended', refId: null })
  second.socket.close(1013)
  t.like(await end, { kind: 'lost', error: { code: 'gone', message: 'the session has ended' } })
})

test('a server that stays down is given up after the window', async (t) => {
  const { server, end } = await attach(t, { window: 700 })
  const client = await server.client()
  client.attached()
  const closing = server.close()
  client.socket.terminate()
  t.like(await end, { kind: 'lost', error: { code: 'unreachable' } })
  await closing
})

test('leaving during a lost connection takes no time', async (t) => {
  const { server, end, attachment, told } = await attach(t)
  const client = await server.client()
  client.attached()
  server.refusals.push(...Array.from({ length: 100 }, () => 503))
  client.socket.terminate()
  await until('the connection is cut', () => told.cuts === 1)
  attachment.leave()
  t.deepEqual(await end, { kind: 'left', isReported: false })
})

test("a session that the server refuses fails with the server's message", async (t) => {
  const server = await startFakeTerminal(t)
  const client = await openClient({ url: server.url, token: 'x' })
  server.refusals.push(403)
  await t.throwsAsync(client.session('x', false)(undefined, new AbortController().signal), {
    message: 'refused with 403',
  })
})
