import test from 'ava'
import { sanitize, sanitizeLine, sanitizePainted, wholeSequences } from '../../../src/cli/text/sanitize.ts'

const esc = '\u001b'
const cases: [string, string, string][] = [
  ['colours', `a${esc}[1;31mb${esc}[0mc`, 'abc'],
  ['a window title', `a${esc}]0;pwned\u0007b`, 'ab'],
  ['a title without an end', `a${esc}]0;pwned\nb`, 'a\nb'],
  ['eight-bit sequences', 'a\u009b31mb', 'ab'],
  ['carriage returns and backspaces', 'a\r\bb', 'ab'],
  ['a lone escape', `a${esc}`, 'a'],
  ['a full reset', `a${esc}cb`, 'ab'],
  ['no characters of plain text', 'é 😀\tb\n', 'é 😀\tb\n'],
]
for (const [title, text, clean] of cases)
  test(`sanitize removes ${title}`, (t) => t.is(sanitize(text), clean))

test('data on one line stays on one line', (t) => {
  t.is(sanitizeLine('a\r\nb\tc'), 'a b c')
})

test('text that rsm has styled keeps its styles and no other sequences', (t) => {
  const painted = `${esc}[31m${esc}[1mred${esc}[22m${esc}[39m`
  t.is(sanitizePainted(`${painted}${esc}[2J${esc}]0;x\u0007\u009b31m${esc}[8m!\n`), `${painted}!\n`)
})

test('an incomplete sequence is held back', (t) => {
  t.is(wholeSequences(`ab${esc}[1;3`), 'ab')
  t.is(wholeSequences(`ab${esc}[1;31mc`), `ab${esc}[1;31mc`)
})
