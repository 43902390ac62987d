import test from 'ava'
import { TerminalModes } from '../../../src/cli/terminal/display.ts'

const escape = '\u001b'
const cases: [title: string, output: string, undo: string][] = [
  ['nothing', 'text\r\n', ''],
  ['colours alone', `${escape}[38;2;1;2;3mx`, ''],
  ['the alternate screen and the mouse', `${escape}[?1049h${escape}[?1002;1006h`, '[?1006l[?1002l[?1049l[0m'],
  ['modes that were reset', `${escape}[?1049h${escape}[?2004h${escape}[?1049l`, '[?2004l[0m'],
  ['a hidden cursor', `${escape}[?25l`, '[?25h[0m'],
  ['no wrapping', `${escape}[?7l`, '[?7h[0m'],
  ['the keypad', `${escape}=${escape}[?1h`, '[?1l>[0m'],
  ['keys as vim wants them', `${escape}[>4;2m`, '[>4m[0m'],
  ['keys as vim gives them back', `${escape}[>4;2m${escape}[>4;m`, ''],
  ['kitty keyboard encodings, twice', `${escape}[>1u${escape}[>5u`, '[<u[<u[0m'],
  ['a reset', `${escape}[?1049h${escape}c`, ''],
  ['harmless modes', `${escape}[?12h`, ''],
]
for (const [title, output, undo] of cases)
  test(`terminal modes set by programs are undone: ${title}`, (t) => {
    const modes = new TerminalModes()
    modes.see(output)
    t.is(modes.undo().replaceAll(escape, ''), undo)
    const byCharacter = new TerminalModes()
    for (const character of output) byCharacter.see(character)
    t.is(byCharacter.undo(), modes.undo(), 'a character at a time')
  })

test('modes that were undone can be set again', (t) => {
  const modes = new TerminalModes()
  modes.see(`${escape}[?1049h${escape}[>4;2m`)
  t.true(modes.isAlternate)
  modes.undo()
  t.is(modes.redo(), `${escape}[?1049h${escape}[>4;2m`)
})

test('key encodings are a bounded stack that drops the oldest, as in a terminal; a pop may remove several', (t) => {
  const modes = new TerminalModes()
  modes.see(`${escape}[>1u${escape}[>2u${escape}[>3u${escape}[<2u`)
  t.is(modes.redo(), `${escape}[>1u`)
  modes.see(`${escape}[<9u${escape}[<u`)
  t.is(modes.undo(), '')
  for (let at = 0; at < 31; at++) modes.see(`${escape}[>${at}u`)
  t.is(modes.redo(), Array.from({ length: 16 }, (_, at) => `${escape}[>${at + 15}u`).join(''))
  modes.see(`${escape}c`)
  modes.see(`${escape}[>1u`)
  t.is(modes.redo(), `${escape}[>1u`)
})

const floods: [title: string, piece: string][] = [
  ['pushed encodings', `${escape}[>1u`],
  ['pushed encodings, all different', `${escape}[>1u${escape}[>31u${escape}[<u`],
  ['modes that come and go', `${escape}[?1049h${escape}[?1049l`],
  ['modes in one sequence', '1049;'],
  ['numbers without end', '1'],
  ['incomplete escapes', escape],
  ['incomplete sequences', `${escape}[?`],
  ['titles without an end', `${escape}]0;title`],
]
for (const [title, piece] of floods)
  test(`a flood of modes from a host takes bounded memory, and later modes are understood: ${title}`, (t) => {
    const flood = `${escape}[?${piece.repeat(2_000_000 / piece.length)}`
    const whole = new TerminalModes()
    whole.see(flood)
    const torn = new TerminalModes()
    for (let at = 0; at < flood.length; at += 7) torn.see(flood.slice(at, at + 7))
    for (const modes of [whole, torn]) {
      for (const end of ['h', 'm', 'u', `${escape}[>${'0'.repeat(100)}7u`]) modes.see(end)
      t.true(modes.undo().length < 1000, 'the undo sequence is short')
      t.true(modes.redo().length < 1000, 'the redo sequence is short')
      modes.see(`${escape}c${escape}[?25l`)
      t.is(modes.undo(), `${escape}[?25h${escape}[0m`, 'later modes are understood')
    }
  })
