import test from 'ava'
import { HeldInput } from '../../src/net/held-input.ts'

test('a large paste goes in frames that split no character, and what follows waits until the socket has room', (t) => {
  const sent: { data: string; done: () => void }[] = []
  let drained = 0
  const sink = { bufferedAmount: 0, send: (data: string, done: () => void) => sent.push({ data, done }) }
  const input = new HeldInput(() => {
    drained++
  })
  input.attach(sink)
  t.is(input.push('small'), 'taken')
  const paste = `a${'😀'.repeat(100_000)}`
  sink.bufferedAmount = 400_000
  t.is(input.push(paste), 'full')
  const frames = sent.slice(1).map(({ data }) => data)
  t.true(frames.length > 5)
  t.true(frames.every((frame) => frame.length <= 32 * 1024 && Buffer.from(frame).toString() === frame))
  t.is(frames.join(''), paste)
  sink.bufferedAmount = 200_000
  sent[1]?.done()
  t.is(drained, 0)
  sink.bufferedAmount = 0
  for (const { done } of sent.slice(2)) done()
  t.is(drained, 1)
})

test('input that waited for a socket that is lost goes on with the next one', (t) => {
  let drained = 0
  const input = new HeldInput(() => {
    drained++
  })
  input.attach({ bufferedAmount: 400_000, send: () => {} })
  t.is(input.push('x'), 'full')
  input.detach()
  t.is(drained, 1)
  t.is(input.push('held'), 'taken')
  t.is(input.push('y'.repeat(20_000)), 'refused')
  const sent: string[] = []
  input.attach({ bufferedAmount: 0, send: (data) => sent.push(data) })
  t.deepEqual(sent, ['held'])
})
