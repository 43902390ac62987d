import test from 'ava'
import { InputPieces } from '../../../src/cli/tui/screen/blessed-screen.ts'
import { Painter, paintRow } from '../../../src/cli/tui/screen/paint.ts'
import type { Row } from '../../../src/cli/tui/screen/screen.ts'

const escape = '\u001b'

test('keys and mouse reports are recognized wherever reads split them', (t) => {
  const whole = [
    'a',
    'ü',
    '😀',
    `${escape}[A`,
    `${escape}OA`,
    `${escape}[1;5C`,
    `${escape}[5~`,
    `${escape}[<0;10;5M`,
    `${escape}[<64;1;1M`,
    `${escape}[M !!`,
    `${escape}[[A`,
    `${escape}x`,
    '\r',
    '\u0003',
  ]
  const text = whole.join('')
  const atOnce = new InputPieces()
  t.deepEqual(atOnce.push(text), whole)
  t.false(atOnce.isTorn)
  const torn = new InputPieces()
  // Escape sequences are split after every character.
  const points = Array.from(text)
  t.deepEqual(
    points.flatMap((point) => torn.push(point)),
    whole,
  )
  const alone = new InputPieces()
  t.deepEqual(alone.push(escape), [])
  t.true(alone.isTorn)
  t.deepEqual(alone.flush(), [escape])
  t.deepEqual(
    alone.push(`${escape}[${'1'.repeat(100)}`).length > 0,
    true,
    'an invalid sequence is not waited for',
  )
})

test('only changed lines are redrawn, and all lines after the screen was cleared', (t) => {
  const row = (text: string): Row => [{ at: 0, spans: [{ text }] }]
  const painter = new Painter(true)
  const size = { cols: 10, rows: 3 }
  const first = painter.paint({ rows: [row('one'), row('two')], mouse: true }, size)
  t.true(first.includes('one') && first.includes('two') && first.includes(`${escape}[2J`))
  t.is(painter.paint({ rows: [row('one'), row('two')], mouse: true }, size), '')
  const second = painter.paint({ rows: [row('one'), row('2')], mouse: true }, size)
  t.false(second.includes('one'))
  t.true(second.includes(`${escape}[2;1H`))
  painter.forget()
  t.true(painter.paint({ rows: [row('one')], mouse: true }, size).includes('one'))
})

test('S06 painted text never moves the cursor; colours are omitted if they are disabled', (t) => {
  const hostile = `${escape}[2J${escape}]0;title\u0007{red-fg}a\u202eb\nc\td`
  const row: Row = [
    { at: 0, spans: [{ text: hostile, style: { fg: 'red', bold: true } }] },
    { at: 20, spans: [{ text: 'right' }] },
  ]
  t.is(paintRow(row, true), `${escape}[1;31m{red-fg}ab c d${escape}[0m${escape}[21Gright`)
  t.is(paintRow(row, false), `${escape}[1m{red-fg}ab c d${escape}[0m${escape}[21Gright`)
})
