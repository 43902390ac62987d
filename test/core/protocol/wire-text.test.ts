import test from 'ava'
import fc from 'fast-check'
import { decodeFromAgent, isFault, readFromAgent } from '../../../src/core/protocol/codec.ts'
import { encode, encodeAround } from '../../../src/core/protocol/wire-text.ts'

const time = '2026-01-01T00:00:00.000Z'
const output = (data: string) =>
  encode('SCRIPT_OUTPUT', { taskId: 't1', stream: 'stdout', sequence: 7, data }, 'a1', time)

test('P20 output with its text last is read without decoding it twice, with the same result', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (data) => {
      const frame = output(data)
      const { message, json } = readFromAgent(Buffer.from(frame))
      // UTF-8 cannot carry a lone surrogate: JSON writes it as an escape.
      t.deepEqual(message, decodeFromAgent(frame))
      if (data !== '') t.is(JSON.parse(Buffer.from(json ?? []).toString()), data)
    }),
  )
})

test('P20 terminal output with its text last is read without decoding it twice too', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (data) => {
      const frame = encode('TERMINAL_OUTPUT', { sessionId: 's1', sequence: 7, data }, 'a1', time)
      const { message, json } = readFromAgent(Buffer.from(frame))
      t.deepEqual(message, decodeFromAgent(frame))
      if (data !== '') t.is(JSON.parse(Buffer.from(json ?? []).toString()), data)
    }),
  )
})

test('head and tail around the text equal those of the whole frame', (t) => {
  const { head, tail } = encodeAround({ taskId: 't1', stream: 'stderr', sequence: 3 }, 'a9', time)
  const payload = { taskId: 't1', stream: 'stderr' as const, sequence: 3, data: 'x"y\n' }
  t.is(head + JSON.stringify('x"y\n') + tail, encode('SCRIPT_OUTPUT', payload, 'a9', time))
})

const envelope = '"type":"SCRIPT_OUTPUT","id":"a1","timestamp":""'
const about = '"taskId":"t1","stream":"stdout","sequence":7'
const frames: Record<string, string> = {
  'text in the middle': `{${envelope},"payload":{"data":"x","taskId":"t1","stream":"stdout","sequence":7}}`,
  'no text': `{${envelope},"payload":{${about}}}`,
  'text that is a number': `{${envelope},"payload":{${about},"data":7}}`,
  'text twice': `{${envelope},"payload":{${about},"data":"first","data":"second"}}`,
  'text with a field after it': `{${envelope},"payload":{${about},"data":"x","more":"y"}}`,
  'unterminated text': `{${envelope},"payload":{${about},"data":"x\\"}}`,
  'a line feed in the text': `{${envelope},"payload":{${about},"data":"x\ny"}}`,
  'a bad escape in the text': `{${envelope},"payload":{${about},"data":"\\x41"}}`,
  'text outside the payload': `{${envelope},"payload":{${about}},"other":{"data":"x"}}`,
  'text in the payload and outside': `{${envelope},"payload":{${about},"data":"in"},"other":{"data":"out"}}`,
  'a key that ends in data': `{${envelope},"payload":{${about},"x,\\"data":"x"}}`,
  'another type with text last': `{"type":"TERMINAL_OUTPUT","id":"a1","timestamp":"","payload":{"sessionId":"s1","data":"x"}}`,
  'a numbered field after the payload': `{${envelope},"payload":{${about}, "data":"REAL"},"5":{"a":1,"data":"FAKE"}}`,
  'a numbered field in the payload': `{${envelope},"payload":{${about}, "data":"REAL","7":{"a":1,"data":"FAKE"}}}`,
  'a prototype after the payload': `{${envelope},"payload":{${about}, "data":"REAL"},"__proto__":{"a":1,"data":"FAKE"}}`,
  'an escaped key': `{${envelope},"payload":{${about},"d\\u0061ta":"REAL","5":{"x":1,"data":"FAKE"}}}`,
  'an empty text': `{${envelope},"payload":{${about},"data":""}}`,
  'spaces everywhere': `{ ${envelope} , "payload" : { ${about} , "data" : "x" } }`,
  'a cut end': `{${envelope},"payload":{${about},"data":"x`,
  'only the end': '"}}',
  nothing: '',
}
for (const [what, frame] of Object.entries(frames))
  test(`a frame with ${what} is read as the JSON decoder reads it`, (t) => {
    const { message, json } = readFromAgent(Buffer.from(frame))
    t.deepEqual(message, decodeFromAgent(frame))
    if (json && !isFault(message) && message.type === 'SCRIPT_OUTPUT')
      t.is(JSON.parse(Buffer.from(json).toString()), message.payload.data)
  })
