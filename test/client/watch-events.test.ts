import test from 'ava'
import { Api } from '../../src/client/http/api.ts'
import { openTransport } from '../../src/client/http/transport.ts'
import { type EventsOptions, type FleetEvent, watchEvents } from '../../src/client/watch.ts'
import { RsmError } from '../../src/core/errors.ts'
import { openConnection } from '../../src/net/connect.ts'
import { eventStream, hostNamed, startFakeServer } from '../fixtures/fake-server.ts'

const at = '2026-11-21T03:25:15.000Z'
const changeOf = (id: number) => ({ change: 'updated', at, host: hostNamed(id, `web${id}`) })

async function take(url: string, count: number, options: EventsOptions = {}): Promise<FleetEvent[]> {
  const api = new Api(url, openTransport(openConnection({ url })), 'secret')
  const events: FleetEvent[] = []
  for await (const event of watchEvents(api, options)) if (events.push(event) === count) break
  return events
}

test('watching resumes after the last complete id, even if it came without an event', async (t) => {
  let connections = 0
  const server = await startFakeServer(t, {
    'GET /api/events': (_seen, response) => {
      connections++
      const write = eventStream(response)
      write('ready', { id: 'e-1' }, 'e-1')
      if (connections === 1) {
        write('host', changeOf(1), 'e-2')
        // An id without an event, and an event whose end never arrives.
        response.write(':\nid: e-5\n\nevent: host\nid: e-6\n')
        setImmediate(() => response.destroy())
      } else write('host', changeOf(2), 'e-6')
    },
  })
  const cuts: string[] = []
  const options = { types: ['host', 'task'], after: 'e-0', onCut: (error: RsmError) => cuts.push(error.code) }
  const events = await take(server.url, 4, options as EventsOptions)
  t.deepEqual(
    events.map(({ type, id }) => [type, id]),
    [
      ['ready', 'e-1'],
      ['host', 'e-2'],
      ['ready', 'e-1'],
      ['host', 'e-6'],
    ],
  )
  t.deepEqual(cuts, ['unreachable'])
  const [first, second] = server.seen
  t.deepEqual([first?.query.getAll('type'), first?.query.get('after')], [['host', 'task'], 'e-0'])
  t.deepEqual([second?.headers['last-event-id'], second?.query.get('after')], ['e-5', null])
})

test('events of an unknown type are skipped', async (t) => {
  const server = await startFakeServer(t, {
    'GET /api/events': (_seen, response) => {
      const write = eventStream(response)
      write('novelty', {}, 'e-1')
      write('reset', { reason: 'BEHIND', id: 'e-2' }, 'e-2')
    },
  })
  t.deepEqual(await take(server.url, 1), [{ type: 'reset', id: 'e-2', reason: 'BEHIND' }])
})

test('watching fails if the server stays down, with a hint to resume after the last id', async (t) => {
  const server = await startFakeServer(t, {})
  await server.close()
  const error = await t.throwsAsync(take(server.url, 1, { retryFor: 0, after: 'e-7' }), {
    instanceOf: RsmError,
  })
  t.is(error.code, 'unreachable')
  t.is(error.hint, 'follow again: rsm events --after e-7')
})
