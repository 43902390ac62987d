import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { bashOnPty, rsm } from '../../helpers/terminals/pty.ts'

const events = [
  [0.01, 'o', '\u001b[?1049h\u001b[?25lone\r\n'],
  [0.02, 'r', '90x30'],
  [3600, 'o', 'two\r\n'],
]
const cast = ['{"version":2,"width":80,"height":24}', ...events.map((event) => JSON.stringify(event))].join(
  '\n',
)

test('quitting a recording restores the terminal and the screen', async (t) => {
  const home = temporaryDirectory(t)
  writeFileSync(join(home, 'x.cast'), cast)
  const line = `stty -g >before; ${rsm} recordings play x.cast; echo "exit $?"; stty -g >after`
  const pty = bashOnPty(t, line, home)
  await pty.shows(/one\r\n/)
  pty.type('q')
  await pty.ended
  t.true(pty.shown.endsWith('one\r\n\u001b[?25h\u001b[?1049l\u001b[0mexit 0\r\n'), JSON.stringify(pty.shown))
  t.is(readFileSync(join(home, 'after'), 'utf8'), readFileSync(join(home, 'before'), 'utf8'))
})

test('the end of a recording is printed on a line of its own', async (t) => {
  const home = temporaryDirectory(t)
  const lines = ['{"version":2,"width":80,"height":24}', '[0.01,"o","$ exit"]']
  writeFileSync(join(home, 'x.cast'), lines.join('\n'))
  const pty = bashOnPty(t, `${rsm} recordings play x.cast; echo "exit $?"`, home)
  await pty.ended
  t.regex(pty.shown, /\$ exit\r\n.*rsm: end of the recording\r\nexit 0\r\n$/s)
})

test('a recording played into a pipe has no pauses, and control sequences only with --raw; an invalid speed is refused', async (t) => {
  const home = temporaryDirectory(t)
  const file = join(home, 'x.cast')
  writeFileSync(file, cast)
  const played = await runRsm(['recordings', 'play', file], cleanEnv(home))
  t.deepEqual([played.exit, played.stdout], [0, 'one\ntwo\n'])
  const raw = await runRsm(['recordings', 'play', file, '--raw'], cleanEnv(home))
  t.deepEqual([raw.exit, raw.stdout], [0, '\u001b[?1049h\u001b[?25lone\ntwo\n'])
  const wrong = await runRsm(['recordings', 'play', file, '--speed', '0'], cleanEnv(home))
  t.is(wrong.exit, 2)
  t.regex(wrong.stderr, /--speed takes a number above 0/)
})
