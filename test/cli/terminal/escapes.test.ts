import test from 'ava'
import { EscapeReader, escapeCharacter, type Typed } from '../../../src/cli/terminal/escapes.ts'
import { RsmError } from '../../../src/core/errors.ts'

const send = (text: string): Typed => ({ send: text })
const [leave, help, suspend]: Typed[] = [{ escape: 'leave' }, { escape: 'help' }, { escape: 'suspend' }]

const cases: [title: string, typed: string, expected: (Typed | undefined)[]][] = [
  ['at the very beginning', '~.', [leave]],
  ['after a line', 'ls\r~.', [send('ls\r'), leave]],
  ['after a line feed', 'ls\n~?', [send('ls\n'), help]],
  ['not within a line', 'ls ~.', [send('ls ~.')]],
  ['Ctrl-Z suspends', '\r~\u001a', [send('\r'), suspend]],
  ['two escape characters send one, and are not an escape', '~~.', [send('~.')]],
  ['three escape characters send two', '\r~~~.', [send('\r~~.')]],
  ['an escape character before another key is sent with it', '~x', [send('~x')]],
  ['a line end ends an escape and begins a line', '~\r~.', [send('~\r'), leave]],
  ['another escape may follow help', '~?~.', [help, leave]],
  [
    'pasted text never ends a session',
    'a\r\u001b[200~x\r~.\u001b[201~',
    [send('a\r\u001b[200~x\r~.\u001b[201~')],
  ],
  [
    'an escape works after a paste',
    '\u001b[200~x\u001b[201~\r~.',
    [send('\u001b[200~x\u001b[201~\r'), leave],
  ],
  ['wide characters are sent', '\r😀~é', [send('\r😀~é')]],
]

/** Joins the sent text, with escapes in their places, as if the input had come in one piece. */
function joined(pieces: readonly (Typed | undefined)[]): string {
  return pieces
    .map((piece) => (piece === undefined ? '' : 'send' in piece ? piece.send : `<${piece.escape}>`))
    .join('')
}

for (const [title, typed, expected] of cases)
  test(`escapes: ${title}`, (t) => {
    t.deepEqual(new EscapeReader('~').read(typed), expected as Typed[])
    const reader = new EscapeReader('~')
    t.is(joined(Array.from(typed).flatMap((key) => reader.read(key))), joined(expected), 'a key at a time')
  })

test('escapes: another character can be set, and none disables escapes', (t) => {
  t.deepEqual(new EscapeReader('%').read('~.\r%.'), [send('~.\r'), leave as Typed])
  t.deepEqual(new EscapeReader(undefined).read('~.'), [send('~.')])
})

test('escapes: the character is given literally, as ^X, or as none', (t) => {
  t.is(escapeCharacter('%'), '%')
  t.is(escapeCharacter('^B'), '\u0002')
  t.is(escapeCharacter('^b'), '\u0002')
  t.is(escapeCharacter('^]'), '\u001d')
  t.is(escapeCharacter('none'), undefined)
  for (const word of ['', 'ab', '^BB'])
    t.is(t.throws(() => escapeCharacter(word), { instanceOf: RsmError }).code, 'usage')
})
