import test from 'ava'
import fc from 'fast-check'
import { decodeFromAgent, isFault, readFromAgent } from '../../../src/core/protocol/codec.ts'
import { badBodies } from '../../helpers/faults/bad-input.ts'

const good = {
  type: 'SCRIPT_OUTPUT',
  id: 'a1',
  timestamp: '2026-11-21T03:25:15.000Z',
  payload: { taskId: 't1', stream: 'stdout', sequence: 0, data: 'one\n' },
}
const { data: _, ...rest } = good.payload

/** Checks that the fast reader and the JSON decoder give the same message and the same text. */
function same(text: string): void {
  const { message, json } = readFromAgent(Buffer.from(text))
  const plain = decodeFromAgent(text)
  const isEqual = JSON.stringify(message) === JSON.stringify(plain)
  if (!isEqual) throw new Error(`${JSON.stringify(message)} for ${text}`)
  if (!json || isFault(plain) || plain.type !== 'SCRIPT_OUTPUT') return
  if (JSON.parse(Buffer.from(json).toString()) !== plain.payload.data)
    throw new Error(`${Buffer.from(json).toString()} for ${text}`)
}

for (const [what, text] of [
  ['as the agent sends it', JSON.stringify(good)],
  ['with its text first', JSON.stringify({ ...good, payload: { data: 'x', ...rest } })],
  [
    'with a text in an unknown field',
    JSON.stringify({
      payload: { data: '', ...rest },
      type: good.type,
      id: 'a1',
      timestamp: '',
      extra: { a: 1, data: 'not output' },
    }),
  ],
  ['with its text twice', JSON.stringify(good).replace('"data"', '"data":"first","data"')],
  [
    'with its payload twice',
    JSON.stringify(good).replace('"payload"', '"payload":{"data":"first"},"payload"'),
  ],
  [
    'with a text that ends like a frame',
    JSON.stringify({ ...good, payload: { ...good.payload, data: '"}}' } }),
  ],
  ['with blanks around its text', `${JSON.stringify(good).slice(0, -2)} } }`],
  ['with a raw line end in its text', JSON.stringify(good).replace('\\n', '\n')],
  ['with half a surrogate pair', JSON.stringify(good).replace('\\n', '\\ud800')],
] as const)
  test(`output ${what} is read as the JSON decoder reads it`, (t) => {
    same(text)
    t.pass()
  })

test('any output is read the same by the fast reader and by the JSON decoder', (t) => {
  fc.assert(
    fc.property(badBodies(good), (text) => same(text)),
    { numRuns: 5000 },
  )
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), fc.jsonValue(), (data, extra) => {
      same(JSON.stringify({ ...good, payload: { ...rest, extra, data } }))
      same(JSON.stringify({ ...good, payload: { ...rest, data, extra } }))
      same(JSON.stringify({ ...good, extra, payload: { ...rest, data } }))
    }),
    { numRuns: 2000 },
  )
  t.pass()
})
