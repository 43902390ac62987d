import test from 'ava'
import fc from 'fast-check'
import { type ServerEvent, SseParser } from '../../src/net/event-stream.ts'

const stream = ': hello\nevent: output\nid: 1\ndata: {"a":"é😀"}\n\nevent: end\r\ndata: 1\r\ndata: 2\r\n\r\n'
const wanted: ServerEvent[] = [
  { event: 'output', data: '{"a":"é😀"}', id: '1' },
  { event: 'end', data: '1\n2', id: '1' },
]

test('parsed events do not depend on how the bytes are split', (t) => {
  const bytes = Buffer.from(stream)
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: bytes.length })), (cuts) => {
      const parser = new SseParser()
      const marks = [0, ...cuts.sort((a, b) => a - b), bytes.length]
      const events = marks.slice(1).flatMap((end, at) => parser.push(bytes.subarray(marks[at] ?? 0, end)))
      t.deepEqual(events, wanted)
    }),
    { numRuns: 200 },
  )
})

test('a comment and an event without data are ignored', (t) => {
  t.deepEqual(new SseParser().push(Buffer.from(': ping\n\nevent: x\n\n')), [])
})
