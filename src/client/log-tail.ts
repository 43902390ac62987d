import { largestPage } from '../core/protocol/bounds.ts'
import type { LogEntry, LogPage, LogQuery } from '../core/protocol/http/logs.ts'

type ReadPage = (query: LogQuery) => Promise<LogPage>

interface LogTail {
  readonly entries: LogEntry[]
  readonly next: number
}

export const mostTailLines = 1_000_000
const endOfLog = Number.MAX_SAFE_INTEGER
/** A page costs a request: fewer entries save nothing. */
const smallestPage = 20
/** Characters; the beginning of a longer line is not searched for. */
const longestLine = 1_048_576
/** Most lines whose beginnings are fetched at once. */
const asksAtOnce = 8

/** A lone `\r` also ends a line, as it does on a screen. */
const lineEnd = /\r\n|\n|\r/g
/** A `\r` at the end of an entry may be half a line end: it counts with the next entry. */
const certainLineEnd = /\r?\n|\r(?=[^\n])/g

const sourceOf = ({ hostId, stream }: LogEntry) => `${hostId} ${stream}`

/** One stream of one host: its entries joined, and the offset of each in the text. */
interface Source {
  readonly entries: LogEntry[]
  readonly starts: number[]
  text: string
}

/** A line: the entry that ends it, and its offset in its source. */
interface Line {
  readonly source: Source
  readonly from: number
  readonly endedBy: number
}

function sourcesOf(entries: readonly LogEntry[]): Source[] {
  const sources = new Map<string, Source & { parts: string[]; length: number }>()
  for (const entry of entries) {
    const key = sourceOf(entry)
    let source = sources.get(key)
    if (source === undefined)
      sources.set(key, (source = { entries: [], starts: [], text: '', parts: [], length: 0 }))
    source.entries.push(entry)
    source.starts.push(source.length)
    source.parts.push(entry.data)
    source.length += entry.data.length
  }
  for (const source of sources.values()) source.text = source.parts.join('')
  return [...sources.values()]
}

/** Lines of a source in order; the last entry ends an unfinished one. */
function linesOf(source: Source): Line[] {
  const { text, starts, entries } = source
  const lines: Line[] = []
  let at = 0
  const add = (from: number, end: number) => {
    while ((starts[at + 1] ?? Number.POSITIVE_INFINITY) < end) at++
    lines.push({ source, from, endedBy: entries[at]?.id ?? 0 })
  }
  let from = 0
  for (const { index, 0: ending } of text.matchAll(lineEnd)) {
    add(from, index + ending.length)
    from = index + ending.length
  }
  if (from < text.length) add(from, text.length)
  return lines
}

/** The last `count` lines by the order of their ends, as the offset of the first one in each source. */
function lastLines(entries: readonly LogEntry[], count: number): Map<Source, number> {
  const lines = sourcesOf(entries).flatMap(linesOf)
  lines.sort((a, b) => a.endedBy - b.endedBy)
  const begins = new Map<Source, number>()
  for (const { source, from } of lines.slice(-count))
    begins.set(source, Math.min(from, begins.get(source) ?? from))
  return begins
}

function* fromPlace({ entries, starts }: Source, place: number): Generator<LogEntry> {
  for (const [at, entry] of entries.entries()) {
    const data = entry.data.slice(Math.max(0, place - (starts[at] ?? 0)))
    if (data !== '') yield data.length === entry.data.length ? entry : { ...entry, data }
  }
}

/** Entries before the first one of its host and stream, back to the end of a line. */
async function beginningOf(read: ReadPage, first: LogEntry): Promise<LogEntry[]> {
  const { hostId, stream } = first
  let found: LogEntry[] = []
  let length = 0
  let before = first.id
  while (before > 0 && length < longestLine) {
    const page = await read({ hostId, stream, before, size: smallestPage })
    found = [...page.entries, ...found]
    before = page.previous
    if (page.entries.some(({ data }) => /[\r\n]/.test(data))) break
    length += page.entries.reduce((sum, { data }) => sum + data.length, 0)
  }
  return found
}

/**
 * The last `count` lines of everything that `query` selects in a log, cut to whole lines. Reads backwards, so that
 * the cost does not depend on the log's size; the log continues after `next`.
 */
export async function readTail(read: ReadPage, query: LogQuery, count: number): Promise<LogTail> {
  const size = Math.min(largestPage, Math.max(smallestPage, count))
  let page = await read({ ...query, before: endOfLog, size })
  const { next } = page
  if (count === 0) return { entries: [], next }
  const pages = [page.entries]
  const endsOf = (entries: readonly LogEntry[]) =>
    entries.reduce((sum, { data }) => sum + (data.match(certainLineEnd)?.length ?? 0), 0)
  let ends = endsOf(page.entries)
  while (ends < count && page.previous > 0) {
    page = await read({ ...query, before: page.previous, size })
    pages.push(page.entries)
    ends += endsOf(page.entries)
  }
  const entries = pages.reverse().flat()
  if (page.previous > 0) {
    const torn = [...lastLines(entries, count)].flatMap(([source, from]) =>
      from === 0 ? source.entries.slice(0, 1) : [],
    )
    for (let at = 0; at < torn.length; at += asksAtOnce) {
      const asked = torn.slice(at, at + asksAtOnce).filter(({ sequence }) => sequence > 0)
      const found = await Promise.all(asked.map((first) => beginningOf(read, first)))
      for (const entry of found.flat()) entries.push(entry)
    }
    entries.sort((a, b) => a.id - b.id)
  }
  const kept = [...lastLines(entries, count)].flatMap(([source, from]) => [...fromPlace(source, from)])
  return { entries: kept.sort((a, b) => a.id - b.id), next }
}
