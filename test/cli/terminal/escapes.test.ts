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
  ['suspends', '\r~\u001a', [send('\r'), suspend]],
  ['twice is one, and no escape', '~~.', [send('~.')]],
  ['three of them are two', '\r~~~.', [send('\r~~.')]],
  ['before another key both are sent', '~x', [send('~x')]],
  ['a line end ends it, and begins a line', '~\r~.', [send('~\r'), leave]],
  ['help leaves the line where it was', '~?~.', [help, leave]],
  [
    'only what the user pastes ends a session',
    'a\r\u001b[200~x\r~.\u001b[201~',
    [send('a\r\u001b[200~x\r~.\u001b[201~')],
  ],
  ['a paste ends', '\u001b[200~x\u001b[201~\r~.', [send('\u001b[200~x\u001b[201~\r'), leave]],
  ['wide characters go through', '\r😀~é', [send('\r😀~é')]],
]

/** What would come of the text in one piece: what was sent joined, escapes in their places. */
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

test('escapes: another character, and none', (t) => {
  t.deepEqual(new EscapeReader('%').read('~.\r%.'), [send('~.\r'), leave as Typed])
  t.deepEqual(new EscapeReader(undefined).read('~.'), [send('~.')])
})

test('escapes: the character is named as it is, as ^X, or none', (t) => {
  t.is(escapeCharacter('%'), '%')
  t.is(escapeCharacter('^B'), '\u0002')
  t.is(escapeCharacter('^b'), '\u0002')
  t.is(escapeCharacter('^]'), '\u001d')
  t.is(escapeCharacter('none'), undefined)
  for (const word of ['', 'ab', '^BB'])
    t.is(t.throws(() => escapeCharacter(word), { instanceOf: RsmError }).code, 'usage')
})
