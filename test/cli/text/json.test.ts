import test from 'ava'
import { jsonText } from '../../../src/cli/text/sanitize.ts'

test('JSON holds no control characters that affect a terminal, and parses to the same data', (t) => {
  const all = Array.from({ length: 0x2100 }, (_, at) => String.fromCharCode(at)).join('')
  const data = { [all]: [all, 1, null, { name: 'é 😀' }] }
  for (const indent of [undefined, 2]) {
    const text = jsonText(data, indent)
    t.notRegex(text, /[^\P{Cc}\n]|[\u202a-\u202e\u2066-\u2069]/u)
    t.deepEqual(JSON.parse(text), data)
  }
  t.is(jsonText('é\u009b\u202e\u007f😀'), '"é\\u009b\\u202e\\u007f😀"')
})
