import test, { type ExecutionContext } from 'ava'
import { type Clock, StatusLine } from '../../../src/cli/output/status-line.ts'

const eraseBelow = '\u001b[J'

/** A minimal terminal: rows, a cursor, `\r`, `\n` and "erase below", without wrapping. */
class Terminal {
  columns = 40
  rows = ['']
  #column = 0
  readonly isTTY = true
  resized = () => {}

  on(_event: 'resize', listener: () => void) {
    this.resized = listener
  }

  off() {
    this.resized = () => {}
  }

  write(text: string): boolean {
    for (const part of text.replaceAll(eraseBelow, '\v').split(/(\v|\r|\n)/)) {
      const row = this.rows.at(-1) ?? ''
      if (part === '\r') this.#column = 0
      else if (part === '\n') {
        this.rows.push('')
        this.#column = 0
      } else if (part === '\v') this.rows[this.rows.length - 1] = row.slice(0, this.#column)
      else {
        this.rows[this.rows.length - 1] =
          row.slice(0, this.#column) + part + row.slice(this.#column + part.length)
        this.#column += part.length
      }
    }
    return true
  }
}

/** A clock that the test advances. */
class FakeClock implements Clock {
  #now = 0
  #due: { at: number; work: () => void }[] = []

  now() {
    return this.#now
  }

  after(milliseconds: number, work: () => void) {
    const one = { at: this.#now + milliseconds, work }
    this.#due.push(one)
    return () => {
      this.#due = this.#due.filter((other) => other !== one)
    }
  }

  pass(milliseconds: number) {
    const until = this.#now + milliseconds
    for (;;) {
      const [next] = this.#due.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)
      if (next === undefined) break
      this.#due = this.#due.filter((other) => other !== next)
      this.#now = next.at
      next.work()
    }
    this.#now = until
  }
}

function line(t: ExecutionContext, text = () => '1/2 done') {
  const terminal = new Terminal()
  const clock = new FakeClock()
  const status = new StatusLine(terminal, text, clock)
  t.teardown(() => status.end())
  const sink = { isTTY: true, write: (more: string) => void terminal.write(more) }
  /** Checks the rows half a second later. */
  const shows = (...rows: string[]) => {
    clock.pass(500)
    t.deepEqual(terminal.rows, rows)
  }
  return { terminal, clock, status, out: status.guard(sink), shows }
}

test('the status line is below the output, never part of it, and is erased at the end', async (t) => {
  const { terminal, clock, status, out, shows } = line(t)
  shows('1/2 done')
  await out.write('web1: one\n')
  shows('web1: one', '1/2 done')
  for (let count = 0; count < 1000; count++) await out.write(`${count}\n`)
  status.end()
  t.deepEqual(terminal.rows, ['web1: one', ...Array.from({ length: 1000 }, (_, at) => String(at)), ''])
  clock.pass(5000)
  t.is(terminal.rows.at(-1), '')
})

test('a short run has no status line; it is drawn at a bounded rate, and again each second', async (t) => {
  let drawings = 0
  const { terminal, clock, out } = line(t, () => `drawing ${++drawings}`)
  clock.pass(299)
  t.deepEqual(terminal.rows, [''])
  clock.pass(1)
  t.deepEqual(terminal.rows, ['drawing 1'])
  for (let count = 0; count < 1000; count++) {
    await out.write(`${count}\n`)
    clock.pass(1)
  }
  t.true(drawings >= 9 && drawings <= 12, String(drawings))
  const before = drawings
  clock.pass(3000)
  t.is(drawings, before + 3)
})

test('the status line is drawn on an empty line only', async (t) => {
  const { out, shows } = line(t)
  shows('1/2 done')
  await out.write('Password? ')
  shows('Password? ')
  await out.write('ok\n')
  shows('Password? ok', '1/2 done')
})

test('while a question is open the status line is not drawn, and output waits for the answer', async (t) => {
  const { terminal, status, out, shows } = line(t)
  shows('1/2 done')
  status.ask()
  terminal.write('cancel it? ')
  const waiting = out.write('web1: one\n')
  shows('cancel it? ')
  terminal.write('l\n')
  status.answered()
  await waiting
  shows('cancel it? l', 'web1: one', '1/2 done')
})

test('output that goes elsewhere does not affect the status line', async (t) => {
  const { terminal, status, shows } = line(t)
  shows('1/2 done')
  let piped = ''
  await status.guard({ write: (text) => void (piped += text) }).write('half a line')
  t.is(piped, 'half a line')
  t.deepEqual(terminal.rows, ['1/2 done'])
})

test('the status line never wraps, however narrow the terminal becomes; a width of 1 shows nothing', async (t) => {
  const { terminal, shows } = line(t, () => 'a line with wide 文字 and a\nbreak')
  shows('a line with wide 文字 and a break')
  for (const [columns, shown] of [
    [20, 'a line with wide 文'],
    [5, 'a li'],
    [1, ''],
  ] as const) {
    terminal.columns = columns
    terminal.resized()
    shows(shown)
  }
  t.is(terminal.rows.length, 1)
})
