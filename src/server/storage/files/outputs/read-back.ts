import type { FileHandle } from 'node:fs/promises'
import type { ReadBackQuery, ReadQuery } from '../../ports/outputs.ts'
import { firstAfter, type IndexRecord, matches, readRecords } from './index-file.ts'

/** A read backwards looks at so many entries: one host's few among a million others' hold no request up for long. */
const recordsPerReadBack = 65_536
const recordsPerStep = 2048

/** The records below number `end` in pieces, the last one first. */
async function* backwards(index: FileHandle, end: number, lowest = 0): AsyncGenerator<IndexRecord[]> {
  for (let at = end; at > lowest; ) {
    const from = Math.max(lowest, at - recordsPerStep)
    yield (await readRecords(index, from, at - from)).reverse()
    at = from
  }
}

/** Where entries stand that are the last before a cursor, and the cursors beside them. */
interface Before {
  readonly wanted: IndexRecord[]
  readonly next: number
  readonly previous: number
}

/** Of the first `count` records those that are wanted before a cursor, up to about `budget` bytes of log. */
export async function recordsBefore(
  index: FileHandle,
  count: number,
  query: ReadBackQuery,
  budget: number,
): Promise<Before> {
  const wanted: IndexRecord[] = []
  const end = await firstAfter(index, count, query.before - 1)
  const [last] = end > 0 ? await readRecords(index, end - 1, 1) : []
  let left = budget
  let first = end
  let previous = query.before
  search: for await (const records of backwards(index, end, Math.max(0, end - recordsPerReadBack)))
    for (const record of records) {
      if (left <= 0 || wanted.length >= query.limit) break search
      first--
      previous = record.end
      if (!matches(record, query)) continue
      wanted.push(record)
      left -= record.length
    }
  return { wanted: wanted.reverse(), next: last?.end ?? 0, previous: first === 0 ? 0 : previous }
}

/** The cursor after which the last `tail` wanted entries of the first `count` follow; `size` is where the log ends. */
export async function cursorBeforeLast(
  index: FileHandle,
  { count, size }: { readonly count: number; readonly size: number },
  tail: number,
  query: Pick<ReadQuery, 'hostId' | 'stream'>,
): Promise<number> {
  if (tail <= 0) return size
  let left = tail
  for await (const records of backwards(index, count))
    for (const record of records) {
      if (!matches(record, query)) continue
      left--
      if (left === 0) return record.end - record.length
    }
  return 0
}
