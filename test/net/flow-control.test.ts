import test, { type ExecutionContext } from 'ava'
import { TypedCounter } from '../../src/core/terminals/terminal.ts'
import { PendingInput } from '../../src/net/flow-control.ts'

test('a large paste is sent in frames of whole characters, and later input waits for room in the socket', (t) => {
  const sent: { data: string; done: () => void }[] = []
  let drained = 0
  const send = (data: string, _: unknown, done: () => void) => void sent.push({ data, done })
  const sink = { bufferedAmount: 0, send }
  const input = new PendingInput({ drained: () => void drained++, lost: (sentence) => t.fail(sentence) })
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

test('input pending on a lost socket is sent over the next one', (t) => {
  let drained = 0
  const input = new PendingInput({ drained: () => void drained++, lost: () => {} })
  input.attach({ bufferedAmount: 400_000, send: () => {} }, { by: '', count: 0 })
  t.is(input.push('x'), 'full')
  input.detach()
  t.is(drained, 1)
  t.is(input.push('held'), 'taken')
  t.is(input.push('y'.repeat(1024 * 1024)), 'refused')
  const sent: string[] = []
  input.attach({ bufferedAmount: 0, send: (data) => sent.push(data) }, { by: '', count: 0 })
  t.deepEqual(sent, ['xheld'])
})

/** A server that counts input, over connections that each deliver `deliver` frames. */
function startCounter(t: ExecutionContext) {
  let now = 0
  const typed = new TypedCounter()
  const lost: string[] = []
  const seen = { text: '', lost, typed, tick: (milliseconds: number) => void (now += milliseconds) }
  const input = new PendingInput({
    drained: () => {},
    lost: (sentence) => lost.push(sentence),
    now: () => now,
  })
  const connect = (deliver = Number.POSITIVE_INFINITY) => {
    let left = deliver
    const send = (data: string, place?: { by: string; position: number }) => {
      t.truthy(place)
      if (left-- > 0) seen.text += typed.take({ data, ...place }) ?? ''
    }
    input.attach({ bufferedAmount: 0, send }, { by: typed.by, count: typed.count })
  }
  return { ...seen, input, connect, text: () => seen.text }
}

test('P58 input lost with a connection is sent again in order, from the host’s count', (t) => {
  for (let run = 0; run < 200; run++) {
    const { input, connect, text, lost } = startCounter(t)
    const most = (count: number) => Math.floor(Math.random() * count)
    let paste = ''
    for (let piece = 0; piece < 40; piece++) {
      if (most(4) === 0) input.detach()
      if (most(3) === 0) connect(most(4))
      const data = `${run} ${piece} ${'x'.repeat(most(100))}\n`
      paste += data
      t.is(input.push(data), 'taken')
    }
    connect()
    t.is(text(), paste)
    t.deepEqual(lost, [])
  }
})

test('P58 input that is no longer kept is reported as missing, and later input is dropped up to the next key', (t) => {
  const { input, connect, text, lost, tick } = startCounter(t)
  connect(1)
  t.is(input.push('a'), 'taken')
  const piece = 'x'.repeat(1024 * 1024)
  for (let count = 0; count < 3; count++) input.push(piece)
  input.detach()
  input.push('held')
  connect()
  t.is(text(), 'a')
  const missing = 3 * piece.length + 4
  t.deepEqual(lost, [
    `connection lost: ${missing} characters of input are missing; check the line before you continue`,
  ])
  t.is(input.push('the rest of the paste'), 'dropped')
  tick(499)
  t.is(input.push('!'), 'dropped')
  tick(500)
  t.is(input.push('b'), 'taken')
  t.is(text(), 'ab')
  t.regex(lost[1] ?? '', /: 22 characters of input are missing;/)
})

test('P58 without a count from the server, input typed after a cut is dropped and reported if any may be missing', (t) => {
  const { input, lost, tick } = startCounter(t)
  const sent: string[] = []
  input.push('early ')
  input.attach({ bufferedAmount: 0, send: (data) => sent.push(data) })
  input.detach()
  input.push('rm ')
  input.attach({ bufferedAmount: 0, send: (data) => sent.push(data) })
  t.deepEqual(lost, [
    'connection lost: input may be missing, and the 3 characters typed since are dropped; check the line before you continue',
  ])
  input.detach()
  tick(1000)
  t.is(input.push('lost'), 'refused')
  t.deepEqual(sent, ['early '])
})

test('P58 held input is dropped and reported if another client typed in between', (t) => {
  const { input, connect, text, lost, typed } = startCounter(t)
  connect()
  input.push('mine')
  input.detach()
  input.push(' too')
  typed.take({ data: 'another', by: 'other', position: 0 })
  connect()
  t.is(text(), 'mine')
  t.regex(lost[0] ?? '', /input may be missing, and the 4 characters typed since are dropped/)
})

test('P58 held input of a client that sent none before is also dropped if another client typed in between', (t) => {
  const { input, connect, text, lost, typed } = startCounter(t)
  connect()
  input.detach()
  typed.take({ data: 'another', by: 'other', position: 0 })
  connect()
  t.deepEqual(lost, [])
  input.detach()
  input.push('y\r')
  typed.take({ data: ' once more', by: 'other', position: 7 })
  connect()
  t.is(text(), '')
  t.regex(lost[0] ?? '', /the 2 characters typed since are dropped/)
})

test('P58 input beyond the limit without a connection is refused, as is later input until that is reported', (t) => {
  const { input, connect, text, lost, tick } = startCounter(t)
  connect()
  input.push('a')
  input.detach()
  t.is(input.push('b'), 'taken')
  t.is(input.push('x'.repeat(1024 * 1024)), 'refused')
  tick(1000)
  t.is(input.push('\r'), 'refused')
  connect()
  t.is(text(), 'ab')
  t.regex(lost[0] ?? '', /: 1048577 characters of input are missing;/)
  tick(1000)
  t.is(input.push('c'), 'taken')
  t.is(text(), 'abc')
})

test('P58 Ctrl-C passes after a gap at any speed, and input after it is still dropped', (t) => {
  const { input, connect, text, typed, tick } = startCounter(t)
  connect()
  input.push('a')
  input.detach()
  typed.take({ data: 'another', by: 'other', position: 0 })
  connect()
  t.is(input.push('rest of the paste'), 'dropped')
  tick(100)
  t.is(input.push('\x03'), 'taken')
  t.is(input.push('\x03'), 'taken')
  t.is(input.push('end of the paste\n'), 'dropped')
  t.is(text(), 'a\x03\x03')
})
