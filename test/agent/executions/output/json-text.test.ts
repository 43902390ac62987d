import test from 'ava'
import fc from 'fast-check'
import { jsonText } from '../../../../src/agent/executions/output/json-text.ts'

test('any bytes, UTF-8 or not, become the JSON of their text', (t) => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc
      .array(fc.nat(0x10ffff), { maxLength: 100 })
      .map((points) => Buffer.from(String.fromCodePoint(...points))),
    fc
      .string({ unit: fc.constantFrom('\n', '\\', '"', '\0', '\u001f', 'a', 'é', '😀'), maxLength: 100 })
      .map((text) => Buffer.from(text)),
  )
  fc.assert(
    fc.property(bytes, (some) => {
      const content = Buffer.from(some)
      const text = jsonText('{"é":', content, '}').toString()
      t.is(text, `{"é":${JSON.stringify(content.toString())}}`)
    }),
    { numRuns: 2000 },
  )
})

test('every byte below 128 is escaped as by JSON.stringify, at every position in a group of four', (t) => {
  for (let byte = 0; byte < 128; byte += 1)
    for (const before of ['', 'a', 'ab', 'abc', 'abcd']) {
      const text = `${before}${String.fromCharCode(byte)}xyz`
      t.is(jsonText('', Buffer.from(text), '').toString(), JSON.stringify(text))
    }
})
