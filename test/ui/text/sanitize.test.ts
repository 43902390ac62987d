import test from 'ava'
import { sanitize, sanitizeLine, wholeSequences } from '../../../src/ui/text/sanitize.ts'

const esc = '\u001b'
const cases: [string, string, string][] = [
  ['colours', `a${esc}[1;31mb${esc}[0mc`, 'abc'],
  ['a window title', `a${esc}]0;pwned\u0007b`, 'ab'],
  ['a title that is not ended', `a${esc}]0;pwned\nb`, 'a\nb'],
  ['eight-bit sequences', 'a\u009b31mb', 'ab'],
  ['carriage returns and backspaces', 'a\r\bb', 'ab'],
  ['a lone escape', `a${esc}`, 'a'],
  ['a full reset', `a${esc}cb`, 'ab'],
  ['nothing of plain text', 'é 😀\tb\n', 'é 😀\tb\n'],
]
for (const [title, text, clean] of cases) test(`${title} are taken out`, (t) => t.is(sanitize(text), clean))

test('data on one line stays on one line', (t) => {
  t.is(sanitizeLine('a\r\nb\tc'), 'a b c')
})

test('a sequence whose rest is still to come waits', (t) => {
  t.is(wholeSequences(`ab${esc}[1;3`), 'ab')
  t.is(wholeSequences(`ab${esc}[1;31mc`), `ab${esc}[1;31mc`)
})
