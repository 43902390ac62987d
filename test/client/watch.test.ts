import test from 'ava'
import { Api } from '../../src/client/http/api.ts'
import { openTransport } from '../../src/client/http/transport.ts'
import { type TaskEvent, type WatchOptions, watchTask } from '../../src/client/watch.ts'
import { RsmError } from '../../src/core/errors.ts'
import { openConnection } from '../../src/net/connect.ts'
import { entryOf, envelope, eventStream, resultOf, startFakeServer, taskOf } from '../fixtures/fake-server.ts'

const task = taskOf([resultOf('web1')])
const logs = `/api/tasks/${task.taskId}/logs`

async function follow(url: string, options: WatchOptions = {}, silence?: number): Promise<TaskEvent[]> {
  const api = new Api(
    url,
    openTransport(openConnection({ url }), silence === undefined ? {} : { silence }),
    'secret',
  )
  const events: TaskEvent[] = []
  for await (const event of watchTask(api, task.taskId, options)) events.push(event)
  return events
}

const texts = (events: TaskEvent[]) =>
  events.flatMap((event) => (event.type === 'output' ? [event.entry.data] : []))

test('watching a task yields its output, its hosts and its end', async (t) => {
  const server = await startFakeServer(t, {
    [`GET ${logs}`]: (_seen, response) => {
      const write = eventStream(response)
      write('task', task)
      write('output', entryOf('web1', 'hello\n', { id: 1 }), 1)
      write('host', resultOf('web1'))
      write('end', task)
      response.end()
    },
  })
  const events = await follow(server.url)
  t.deepEqual(
    events.map((event) => event.type),
    ['task', 'output', 'host', 'end'],
  )
  t.is(server.seen[0]?.query.get('follow'), 'true')
  t.is(server.seen[0]?.headers.authorization, 'Bearer secret')
})

test('watching resumes after the last entry, without gaps and duplicates', async (t) => {
  let connections = 0
  const server = await startFakeServer(t, {
    [`GET ${logs}`]: (seen, response) => {
      connections++
      const write = eventStream(response)
      write('task', task)
      if (connections === 1) {
        write('output', entryOf('web1', 'a', { id: 4 }), 4)
        write('output', entryOf('web1', 'b', { id: 7 }), 7)
        setImmediate(() => response.destroy())
        return
      }
      t.is(seen.headers['last-event-id'], '7')
      t.is(seen.query.get('tail'), null)
      // A repeated entry is dropped.
      write('output', entryOf('web1', 'b', { id: 7 }), 7)
      write('output', entryOf('web1', 'c', { id: 9 }), 9)
      write('end', task)
      response.end()
    },
  })
  const cuts: string[] = []
  const events = await follow(server.url, {
    query: { tail: 10 },
    onCut: (error) => void cuts.push(error.code),
  })
  t.deepEqual(texts(events), ['a', 'b', 'c'])
  t.deepEqual(cuts, ['unreachable'])
})

test('a stream that ends without `end` counts as cut', async (t) => {
  let connections = 0
  const server = await startFakeServer(t, {
    [`GET ${logs}`]: (_seen, response) => {
      const write = eventStream(response)
      if (++connections === 2) write('end', task)
      response.end()
    },
  })
  t.is((await follow(server.url)).length, 1)
  t.is(connections, 2)
})

test('watching reconnects if the server is silent for too long', async (t) => {
  let connections = 0
  const server = await startFakeServer(t, {
    [`GET ${logs}`]: (_seen, response) => {
      const write = eventStream(response)
      if (++connections >= 2) write('end', task)
    },
  })
  t.is((await follow(server.url, {}, 100)).length, 1)
  t.true(connections >= 2)
})

test('a server that keeps hanging up after its greeting is given up, and reported as one outage', async (t) => {
  let connections = 0
  const server = await startFakeServer(t, {
    [`GET ${logs}`]: (_seen, response) => {
      const write = eventStream(response)
      write('task', task)
      // A new entry restarts the retry period.
      if (++connections === 2) write('output', entryOf('web1', 'a', { id: 4 }), 4)
      response.end()
    },
  })
  const cuts: boolean[] = []
  const following = follow(server.url, { retryFor: 600, onCut: (_error, again) => void cuts.push(again) })
  await t.throwsAsync(following, { instanceOf: RsmError, code: 'unreachable' })
  t.deepEqual(cuts.slice(0, 3), [false, false, true])
  t.true(cuts.slice(2).every((again) => again))
  t.is(cuts.length, connections)
})

test('watching fails if the server stays down, with the taskId in error and hint', async (t) => {
  const server = await startFakeServer(t, {})
  await server.close()
  const error = await t.throwsAsync(follow(server.url, { retryFor: 300 }), { instanceOf: RsmError })
  t.is(error.code, 'unreachable')
  t.regex(error.message, /task-1/)
  t.is(error.hint, 'follow it again: rsm logs -f task-1')
})

test('watching waits for a server that is starting', async (t) => {
  let connections = 0
  const server = await startFakeServer(t, {
    [`GET ${logs}`]: (_seen, response) => {
      if (++connections < 3) {
        envelope(response, 503, {})
        return
      }
      const write = eventStream(response)
      write('end', task)
      response.end()
    },
  })
  t.is((await follow(server.url)).length, 1)
})

for (const [status, code] of [
  [401, 'unauthenticated'],
  [404, 'not_found'],
  [410, 'gone'],
] as const)
  test(`a response of ${status} ends watching at once`, async (t) => {
    const server = await startFakeServer(t, {
      [`GET ${logs}`]: (_seen, response) => envelope(response, status, {}),
    })
    const error = await t.throwsAsync(follow(server.url), { instanceOf: RsmError })
    t.is(error.code, code)
    t.is(server.seen.length, 1)
  })
