import test from 'ava'
import { eventTypes } from '../../../src/core/protocol/http/events.ts'
import { createListener, Ring } from '../../../src/server/events/ring.ts'

const all = new Set(eventTypes)
const newRing = () => new Ring({ frames: 3, bytes: 1000, batchBytes: 100 })

test('F15 a listener that returns too late gets reset, and then later events', async (t) => {
  const ring = newRing()
  const leave = new AbortController()
  const batches = createListener(ring, { after: undefined, types: all }).batches(leave.signal)
  const next = async () => String((await batches.next()).value)
  t.regex(await next(), /^event: ready\n/)
  ring.append('host', (id) => `${id}\n`)
  t.is(await next(), `${ring.idOf(1)}\n`)
  for (let n = 0; n < 5; n++) ring.append('host', (id) => `${id}\n`)
  t.is(
    await next(),
    `event: reset\nid: ${ring.idOf(6)}\ndata: {"reason":"BEHIND","id":"${ring.idOf(6)}"}\n\n`,
  )
  const pending = next()
  ring.append('task', (id) => `${id}\n`)
  ring.wake()
  t.is(await pending, `${ring.idOf(7)}\n`)
  leave.abort()
  t.true((await batches.next()).done)
})

test('a listener of one type keeps its position while others change, because comments carry the id', async (t) => {
  const ring = newRing()
  const leave = new AbortController()
  const listener = createListener(ring, { after: undefined, types: new Set(['task'] as const) })
  const batches = listener.batches(leave.signal)
  await batches.next()
  const waiting = batches.next()
  for (let n = 0; n < 9; n++) {
    ring.append('host', () => 'x')
    ring.wake()
    await new Promise(setImmediate)
  }
  t.is(listener.comment(), `:\nid: ${ring.idOf(9)}\n\n`)
  t.is(ring.placeOf(ring.idOf(9)), 9)
  leave.abort()
  t.true((await waiting).done)
})
