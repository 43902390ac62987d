import test from 'ava'
import fc from 'fast-check'
import { LineAssembler } from '../../src/cli/output/lines.ts'
import { readTail } from '../../src/client/log-tail.ts'
import type { LogEntry, LogPage, LogQuery } from '../../src/core/protocol/http/logs.ts'
import { entryOf } from '../fixtures/fake-server.ts'

/** A log in pages of `size` entries at most, like the server's, and the queries it received. */
function logOf(entries: readonly LogEntry[], mostOfPage = 500) {
  const asked: LogQuery[] = []
  const read = async (query: LogQuery): Promise<LogPage> => {
    asked.push(query)
    const { before = 0, hostId, stream, size = 500 } = query
    const earlier = entries.filter(({ id }) => id < before)
    const wanted = earlier.filter(
      (entry) => (hostId ?? entry.hostId) === entry.hostId && (stream ?? entry.stream) === entry.stream,
    )
    const page = wanted.slice(-Math.min(size, mostOfPage))
    const first = page[0]?.id
    const isAll = first === undefined || wanted.length === page.length
    return { taskId: 'x', entries: page, next: earlier.at(-1)?.id ?? 0, previous: isAll ? 0 : first }
  }
  return { read, asked }
}

/** `web1 stdout: line`, in the order in which the lines ended; an unfinished line is ordered by its last piece. */
function linesOf(entries: readonly LogEntry[]): string[] {
  const sources = new Map<string, { assembler: LineAssembler; last: number }>()
  const lines: { at: number; text: string }[] = []
  for (const { id, hostname, stream, data } of entries) {
    const key = `${hostname} ${stream}`
    const source = sources.get(key) ?? { assembler: new LineAssembler(), last: 0 }
    sources.set(key, source)
    source.last = id
    for (const line of source.assembler.push(data)) lines.push({ at: id, text: `${key}: ${line}` })
  }
  for (const [key, { assembler, last }] of sources)
    if (assembler.rest !== '') lines.push({ at: last, text: `${key}: ${assembler.rest}` })
  return lines.sort((a, b) => a.at - b.at).map(({ text }) => text)
}

const piece = fc.record({
  host: fc.constantFrom('web1', 'web2', 'web3'),
  stream: fc.constantFrom('stdout' as const, 'stderr' as const),
  data: fc
    .array(fc.constantFrom('a', 'b', '\n', '\r\n', 'cd\n', 'e\nf\ng'), { minLength: 1, maxLength: 4 })
    .map((parts) => parts.join('')),
})

test('the tail of a log is its last lines, however they are split into entries and pages', async (t) => {
  const cases = fc.asyncProperty(
    fc.array(piece, { maxLength: 40 }),
    fc.integer({ min: 0, max: 30 }),
    fc.integer({ min: 1, max: 12 }),
    async (pieces, count, mostOfPage) => {
      const sequences = new Map<string, number>()
      const entries = pieces.map(({ host, stream, data }) => {
        const sequence = sequences.get(host) ?? 0
        sequences.set(host, sequence + 1)
        return entryOf(host, data, { stream, sequence })
      })
      const tail = await readTail(logOf(entries, mostOfPage).read, {}, count)
      const all = linesOf(entries)
      t.deepEqual(linesOf(tail.entries), count === 0 ? [] : all.slice(-count))
      t.is(tail.next, entries.at(-1)?.id ?? 0)
    },
  )
  await fc.assert(cases, { numRuns: 200 })
})

test('the tail of a huge log is read without the rest', async (t) => {
  const entries = Array.from({ length: 5000 }, (_, at) => entryOf('web1', `line ${at}\n`, { sequence: at }))
  const { read, asked } = logOf(entries)
  const tail = await readTail(read, { stream: 'stdout' }, 3)
  t.deepEqual(linesOf(tail.entries), [
    'web1 stdout: line 4997',
    'web1 stdout: line 4998',
    'web1 stdout: line 4999',
  ])
  t.is(asked.length, 1)
})
