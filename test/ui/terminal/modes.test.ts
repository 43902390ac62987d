import test from 'ava'
import { TerminalModes } from '../../../src/ui/terminal/modes.ts'

const escape = '\u001b'
const cases: [title: string, output: string, undo: string][] = [
  ['nothing', 'text\r\n', ''],
  ['colours alone', `${escape}[38;2;1;2;3mx`, ''],
  ['the alternate screen and the mouse', `${escape}[?1049h${escape}[?1002;1006h`, '[?1006l[?1002l[?1049l[0m'],
  ['what was taken back', `${escape}[?1049h${escape}[?2004h${escape}[?1049l`, '[?2004l[0m'],
  ['a hidden cursor', `${escape}[?25l`, '[?25h[0m'],
  ['no wrapping', `${escape}[?7l`, '[?7h[0m'],
  ['the keypad', `${escape}=${escape}[?1h`, '[?1l>[0m'],
  ['keys as vim wants them', `${escape}[>4;2m`, '[>4m[0m'],
  ['keys as vim gives them back', `${escape}[>4;2m${escape}[>4;m`, ''],
  ['keys in the way of kitty, twice', `${escape}[>1u${escape}[>5u`, '[<u[<u[0m'],
  ['a reset', `${escape}[?1049h${escape}c`, ''],
  ['modes that hurt nobody', `${escape}[?12h`, ''],
]
for (const [title, output, undo] of cases)
  test(`what programs did to the terminal is undone: ${title}`, (t) => {
    const modes = new TerminalModes()
    modes.see(output)
    t.is(modes.undo().replaceAll(escape, ''), undo)
    const byCharacter = new TerminalModes()
    for (const character of output) byCharacter.see(character)
    t.is(byCharacter.undo(), modes.undo(), 'a character at a time')
  })

test('after it was undone for a while it can be done again', (t) => {
  const modes = new TerminalModes()
  modes.see(`${escape}[?1049h${escape}[>4;2m`)
  t.true(modes.isAlternate)
  modes.undo()
  t.is(modes.redo(), `${escape}[?1049h${escape}[>4;2m`)
})
