import test from 'ava'
import fc from 'fast-check'
import { type LogLine, LogLines } from '../../../src/cli/tui/log/lines.ts'
import { LogReader } from '../../../src/cli/tui/log/reader.ts'
import { partsOf, Viewport } from '../../../src/cli/tui/log/viewport.ts'
import { LogWindow, windowBounds } from '../../../src/cli/tui/log/window.ts'
import type { LogEntry, LogPage, LogQuery } from '../../../src/core/protocol/http/logs.ts'
import type { Stream } from '../../../src/core/tasks/task.ts'
import { until } from '../../helpers/until.ts'

const entryOf = (id: number, data: string, hostId = 1, stream: Stream = 'stdout'): LogEntry => ({
  id,
  hostId,
  hostname: `web${hostId}`,
  stream,
  sequence: id,
  timestamp: '2026-01-01T00:00:00.000Z',
  data,
})
const textsOf = (lines: readonly LogLine[]) => lines.map(({ text }) => text)

/** Answers like a server with this log; entries are created on request. */
function serverOf(count: number, entryAt: (n: number) => LogEntry, asked: LogQuery[] = []) {
  const idOf = (n: number) => n + 1
  return async (query: LogQuery): Promise<LogPage> => {
    asked.push(query)
    const { after, before, hostId, stream, size = 500 } = query
    const fits = (entry: LogEntry) =>
      (hostId === undefined || entry.hostId === hostId) && (stream === undefined || entry.stream === stream)
    const entries: LogEntry[] = []
    if (before !== undefined) {
      let n = Math.min(count, before - 1)
      const next = n
      while (n > 0 && entries.length < size) {
        n--
        const entry = entryAt(n)
        if (fits(entry)) entries.unshift(entry)
      }
      return { taskId: 't', entries, next, previous: n === 0 ? 0 : idOf(n) }
    }
    let n = after ?? 0
    while (n < count && entries.length < size) {
      const entry = entryAt(n)
      n++
      if (fits(entry)) entries.push(entry)
    }
    return { taskId: 't', entries, next: n, previous: after === undefined || after === 0 ? 0 : after + 1 }
  }
}

async function readerOf(page: (query: LogQuery) => Promise<LogPage>) {
  const faults: unknown[] = []
  const reader = new LogReader({ page, changed: () => undefined, failed: (error) => faults.push(error) })
  reader.select({ hostId: null, stream: null })
  await until('the end is read', () => reader.isLoaded)
  return { reader, faults }
}

test('S06 lines are assembled for each host and stream separately, and hold no control sequences', (t) => {
  const lines = new LogLines()
  const pushed = [
    entryOf(1, 'one\ntw', 1),
    entryOf(2, 'other\n', 2),
    entryOf(3, 'o\r\n10%\r20%\r30%\n\u001b[31mred\u001b', 1),
    entryOf(4, 'err\n', 1, 'stderr'),
    entryOf(5, '[0m\u001b]52;c;aGk=\u0007 \u202eturned\u202c\ta\n漢\t字\n\n', 1),
  ].flatMap((entry) => lines.push(entry))
  t.deepEqual(textsOf(pushed), ['one', 'other', 'two', '30%', 'err', 'red turned      a', '漢      字', ''])
  t.deepEqual(
    pushed.map(({ id }) => id),
    [1, 2, 3, 3, 4, 5, 5, 5],
  )
  lines.push(entryOf(6, 'no end', 2))
  t.deepEqual(textsOf(lines.open()), ['no end'])
  const [long] = lines.push(entryOf(7, `${'x'.repeat(10_000_000)}\n`, 3))
  t.regex(long?.text ?? '', /^x{8192} \(9991808 characters more\)$/)
})

test('a window shows the same lines whichever pages it was read in, and is bounded; lines keep their numbers', (t) => {
  const piece = fc.tuple(
    fc.constantFrom('a', 'b\n', 'c\nd', '\n', 'e\nf\n', '漢\r\n'),
    fc.integer({ min: 1, max: 2 }),
  )
  fc.assert(
    fc.property(
      fc.array(piece, { minLength: 8, maxLength: 60 }),
      fc.array(fc.boolean(), { minLength: 1, maxLength: 40 }),
      fc.integer({ min: 1, max: 5 }),
      (pieces, ups, size) => {
        const all = pieces.map(([data, host], n) => entryOf(n + 1, data, host))
        const from = Math.floor(all.length / 2)
        const page = (start: number, end: number): LogPage => ({
          taskId: 't',
          entries: all.slice(start, end),
          next: end,
          previous: start === 0 ? 0 : start + 1,
        })
        const window = new LogWindow({ entries: 12, characters: 1_000 })
        window.reset(page(from, Math.min(all.length, from + size)), false)
        const seen = new Map<number, string>()
        for (const isUp of ups) {
          const { previous, next } = window
          if (isUp && previous > 0) window.prepend(page(Math.max(0, previous - 1 - size), previous - 1))
          else if (!isUp)
            window.append(page(next, Math.min(all.length, next + size)), next + size >= all.length)
          t.true(window.entries <= 12 + size)
          const held = all.slice(window.previous === 0 ? 0 : window.previous - 1, window.next)
          const assembler = new LogLines()
          const whole = held.flatMap((entry) => assembler.push(entry))
          t.is(window.ended - window.first, whole.length)
          for (let number = window.first; number < window.ended; number++) {
            const text = window.line(number)?.text ?? 'none'
            // A held line may have more of its beginning than the pages have now, but never another end.
            t.true(text.endsWith(whole[number - window.first]?.text ?? 'lost'))
            const known = seen.get(number)
            t.true(known === undefined || known.endsWith(text) || text.endsWith(known), `${known} ${text}`)
            seen.set(number, text)
          }
          if (!window.isAtEnd) continue
          const open = Array.from({ length: window.end - window.ended }, (_, at) =>
            window.line(window.ended + at),
          )
          const expected = assembler.open()
          const first = held[0]?.id ?? 0
          t.is(open.filter((line) => line !== undefined && line.id >= first).length, expected.length)
          for (const { hostId, text } of expected)
            t.true(open.some((line) => line?.hostId === hostId && line.text.endsWith(text)))
        }
      },
    ),
    {
      numRuns: 200,
      // The window drops the beginning of a line without an end.
      examples: [
        [
          Array.from({ length: 20 }, () => ['a', 1] as [string, number]),
          Array.from({ length: 10 }, () => false),
          5,
        ],
      ],
    },
  )
})

const million = 1_000_000
const said = new Map([
  [100_000, ' pin'],
  [690_000, ' needle'],
])
/** Each entry has fifty lines; only two lines differ. */
const entryAt = (n: number): LogEntry => {
  const first = n * 50
  const lines = Array.from({ length: 50 }, (_, at) => `line ${first + at}${said.get(first + at) ?? ''}\n`)
  return entryOf(n + 1, lines.join(''), (n % 5) + 1, n % 4_000 === 9 ? 'stderr' : 'stdout')
}

test('a log of 1 M lines is read, searched and jumped through with a bounded window', async (t) => {
  const asked: LogQuery[] = []
  const { reader, faults } = await readerOf(serverOf(million / 50, entryAt, asked))
  const { window } = reader
  const bounded = () =>
    t.true(window.entries <= windowBounds.entries && window.characters <= windowBounds.characters + 600_000)
  t.is(window.line(window.end - 1)?.text, 'line 999999')
  t.true(window.isAtEnd)
  reader.want('newer')
  t.is(asked.length, 1, 'no page is requested after the end')

  for (let page = 0; page < 10; page++) {
    const { previous } = window
    reader.want('older')
    await until('an older page', () => window.previous < previous)
    bounded()
  }
  t.false(window.isAtEnd)

  const holds = (what: string) => (line: LogLine) => line.text.includes(what)
  const up = await reader.find({ matches: holds('needle'), direction: 'up', from: window.end })
  t.is(window.line(up ?? 0)?.text, 'line 690000 needle')
  bounded()
  const held = window.first
  t.is(await reader.find({ matches: holds('pin'), direction: 'down', from: up ?? 0 }), null)
  t.is(window.first, held, 'a failed search does not move the window')
  reader.want('head')
  await until('the beginning', () => window.previous === 0)
  t.is(window.line(window.first)?.text, 'line 0')
  const down = await reader.find({ matches: holds('pin'), direction: 'down', from: window.first })
  t.is(window.line(down ?? 0)?.text, 'line 100000 pin')
  bounded()

  const stopped = reader.find({ matches: () => false, direction: 'down', from: 0 })
  t.not(reader.searching, null)
  reader.stopFinding()
  t.is(await stopped, undefined)

  asked.length = 0
  const errors = ({ stream }: LogLine) => stream === 'stderr'
  const error = await reader.find({
    matches: errors,
    direction: 'down',
    from: window.end - 1,
    stream: 'stderr',
  })
  t.is(window.line(error ?? 0)?.stream, 'stderr')
  t.true(asked.length <= 3, 'stderr is found by the index of the server')
  t.deepEqual(faults, [])
})

test('a follower reads on from its cursor, and skips to the end of a log that is too far ahead', async (t) => {
  const log = { count: 10 }
  const asked: LogQuery[] = []
  const { reader } = await readerOf((query) => serverOf(log.count, entryAt, asked)(query))
  log.count = 12
  reader.heard(12, 1, 'stdout')
  t.true(reader.isBehind)
  reader.want('newer')
  await until('the new entries are read', () => reader.window.next === 12)
  t.is(asked.at(-1)?.after, 10)
  t.false(reader.isBehind)
  reader.heard(12 + 2_000_000, 1, 'stdout')
  t.true(reader.isTooFarBehind)
  reader.select({ hostId: 3, stream: 'stdout' })
  t.is(reader.window.end, 0)
  await until('the other selection', () => reader.isLoaded)
  t.like(asked.at(-1), { hostId: 3, stream: 'stdout' })
  reader.close()
})

test('a page requested before a search moved the window is discarded', async (t) => {
  const server = serverOf(4_000, entryAt)
  const held = { isHeld: false, release: () => undefined as void }
  const { reader } = await readerOf(async (query) => {
    const isHeld = held.isHeld && query.before !== undefined
    held.isHeld = false
    if (isHeld) await new Promise<void>((resolve) => (held.release = resolve))
    return server(query)
  })
  const { window } = reader
  const matches = ({ text }: LogLine) => text.includes('pin')
  held.isHeld = true
  reader.want('older')
  const found = await reader.find({ matches, direction: 'up', from: window.end })
  const { next } = window
  held.release()
  reader.want('newer')
  await until('the page after it', () => window.next > next)
  const numbers = Array.from({ length: window.ended - window.first }, (_, at) =>
    Number(/\d+/.exec(window.line(window.first + at)?.text ?? '')?.[0]),
  )
  t.true(numbers.every((number, at) => at === 0 || number === (numbers[at - 1] ?? 0) + 1))
  t.is(window.line(found ?? 0)?.text, 'line 100000 pin')
  reader.close()
})

test('a search downwards finds lines newer than the window, and ends at the end of the log', async (t) => {
  let written = 3
  const entry = (n: number) => entryOf(n + 1, `line ${n}\n`)
  const { reader } = await readerOf((query) => serverOf(written, entry)(query))
  const { window } = reader
  const find = (text: string) =>
    reader.find({ matches: (line) => line.text === text, direction: 'down', from: window.first })
  written = 5
  reader.heard(5, 1, 'stdout')
  const found = await find('line 4')
  t.is(window.line(found ?? 0)?.text, 'line 4')
  // Announced but missing: the log may have been cut since.
  reader.heard(9, 1, 'stdout')
  t.is(await find('line 7'), null)
  reader.close()
})

test('a viewport follows, keeps its place once scrolled, and follows again at the end', (t) => {
  const all: string[] = Array.from({ length: 10 }, (_, n) => `line ${n}`)
  const lines = {
    first: 0,
    get end() {
      return all.length
    },
    line: (n: number): LogLine | undefined =>
      all[n] === undefined
        ? undefined
        : { id: n, hostId: 1, hostname: 'web1', stream: 'stdout', text: all[n] },
  }
  const view = new Viewport()
  view.size(8, 4, () => 8)
  const shown = () => view.rows(lines).map(({ text }) => text)
  t.deepEqual(shown(), ['line 6', 'line 7', 'line 8', 'line 9'])
  all.push('a longer line', '漢字漢字漢')
  t.deepEqual(shown(), ['a longer', 'line', '漢字漢字', '漢'])
  view.scroll(lines, -3)
  const scrolled = ['line 7', 'line 8', 'line 9', 'a longer']
  t.deepEqual(shown(), scrolled)
  all.push('more')
  t.deepEqual(shown(), scrolled)
  t.false(view.isFollowing)
  view.wrap = false
  view.column = 2
  t.deepEqual(shown(), ['ne 7', 'ne 8', 'ne 9', 'longer line'])
  view.wrap = true
  view.scroll(lines, Number.POSITIVE_INFINITY, false)
  t.false(view.isFollowing, 'the end of the window is not the end of the log')
  view.scroll(lines, 1, true)
  t.true(view.isFollowing)
  view.scroll(lines, Number.NEGATIVE_INFINITY)
  t.is(shown()[0], 'line 0')
  view.size(1, 3, () => 1)
  t.deepEqual(shown(), ['l', 'i', 'n'])
  view.show(lines, 12)
  t.true(view.rows(lines).some(({ number }) => number === 12))
})

test('A16 lines wrap at blanks, or within a word if no blank is near the end of the row', (t) => {
  const cases: [text: string, width: number, rows: string[]][] = [
    ['the disk of web1 is full', 10, ['the disk', 'of web1 is', 'full']],
    ['exactly so', 10, ['exactly so']],
    ['exactly so it', 10, ['exactly so', 'it']],
    ['a /srv/very/long/path', 10, ['a /srv/ver', 'y/long/pat', 'h']],
    ['漢字漢字 漢字 x', 12, ['漢字漢字', '漢字 x']],
    ['    indented  by two', 12, ['    indented', ' by two']],
    ['          ', 4, ['    ', '    ', '']],
    ['', 4, ['']],
  ]
  for (const [text, width, rows] of cases) t.deepEqual(partsOf(text, width), rows, text)
})
