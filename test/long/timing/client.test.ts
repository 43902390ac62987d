import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { Api } from '../../../src/client/http/api.ts'
import { openTransport } from '../../../src/client/http/transport.ts'
import { wholeLines } from '../../../src/client/services/audit.ts'
import { type TaskEvent, watchTask } from '../../../src/client/watch.ts'
import { RsmError } from '../../../src/core/errors.ts'
import { openConnection } from '../../../src/net/connect.ts'
import { SseParser } from '../../../src/net/event-stream.ts'
import { entryOf, eventStream, resultOf, startFakeServer, taskOf } from '../../fixtures/fake-server.ts'
import { chain } from '../../helpers/audit/audit-lines.ts'

test('a download continues as long as bytes arrive, even if its reader is slow', async (t) => {
  const server = await startFakeServer(t, {
    'GET /recording': async (_seen, response) => {
      for (let at = 0; at < 8; at++) {
        response.write('x'.repeat(1_000_000))
        await delay(100)
      }
      response.end()
    },
  })
  const send = openTransport(openConnection({ url: server.url }), { silence: 600 })
  const body = await new Api(server.url, send, 'x', 100).stream('/recording', {})
  let size = 0
  for await (const chunk of body) {
    if (size === 0) await delay(1_200)
    size += (chunk as Buffer).length
  }
  t.is(size, 8_000_000)
})

test('a slow reader of events does not count as silence of the server', async (t) => {
  const task = taskOf([resultOf('web1')])
  let connections = 0
  const server = await startFakeServer(t, {
    [`GET /api/tasks/${task.taskId}/logs`]: (_seen, response) => {
      connections++
      const write = eventStream(response)
      write('output', entryOf('web1', 'a', { id: 1 }), 1)
      write('end', task)
      const comments = setInterval(() => response.write(':\n\n'), 100)
      response.once('close', () => clearInterval(comments))
    },
  })
  const api = new Api(
    server.url,
    openTransport(openConnection({ url: server.url }), { silence: 450 }),
    'secret',
  )
  const events: TaskEvent[] = []
  for await (const event of watchTask(api, task.taskId)) {
    events.push(event)
    await delay(1_200)
  }
  t.deepEqual(
    events.map(({ type }) => type),
    ['output', 'end'],
  )
  t.is(connections, 1)
})

test('the download of an audit log stops at its timeout if the server stays down', async (t) => {
  const { lines } = chain(1)
  const lost = () => new RsmError('unreachable', 'connection lost in mid-answer')
  let calls = 0
  async function* cut() {
    yield Buffer.from(`${lines[0]}\n`)
    throw lost()
  }
  const dies = async () => {
    if (calls++ > 0) throw lost()
    return cut()
  }
  const reading = async () => {
    for await (const _block of wholeLines(dies, 600));
  }
  await t.throwsAsync(reading, { code: 'unreachable' })
  t.true(calls > 2)
})

test('a long event in many pieces costs time linear in its length', (t) => {
  const parser = new SseParser()
  const piece = Buffer.alloc(64 * 1024, 'x')
  parser.push(Buffer.from('data: '))
  for (let count = 0; count < 400; count++) parser.push(piece)
  const started = performance.now()
  const [event] = parser.push(Buffer.from('\n\n'))
  t.is(event?.data.length, 400 * 64 * 1024)
  t.true(performance.now() - started < 2_000)
})
