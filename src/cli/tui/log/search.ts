import type { LogPage, LogQuery } from '../../../core/protocol/http/logs.ts'
import type { Stream } from '../../../core/tasks/task.ts'
import type { LogLine } from './lines.ts'
import type { NumberedLines } from './viewport.ts'
import { LogWindow, pageSize } from './window.ts'

export interface Find {
  readonly matches: (line: LogLine) => boolean
  readonly direction: 'up' | 'down'
  /** Line number to start from; the line itself is included only with `isInclusive`. */
  readonly from: number
  readonly isInclusive?: boolean
  readonly stream?: Stream
}

export const startOf = ({ direction, from, isInclusive = false }: Find): number =>
  isInclusive ? from : from + (direction === 'down' ? 1 : -1)

interface Searched {
  /** The displayed window; moved to the result. */
  readonly window: LogWindow
  /** Id of the log's newest known entry. */
  readonly newest: () => number
  readonly page: (query: LogQuery) => Promise<LogPage>
  /** Reports the progress in its direction, from 0 to 1. */
  readonly came: (part: number) => void
}

/** Bounds of a search: a page, and one more for lines that continue. Prepending a page rebuilds all lines. */
const searchBounds = { entries: 2 * pageSize, characters: 327_680 }

/**
 * Searches page by page. Number of the next matching line, then in the window; null if none, undefined if
 * aborted.
 */
export async function searchLog(
  log: Searched,
  find: Find,
  signal: AbortSignal,
): Promise<number | null | undefined> {
  const { direction, stream } = find
  const { window } = log
  const isDown = direction === 'down'
  const start = startOf(find)
  const near = scan(window, find, start)
  if (near !== null) return near
  const read = async (query: LogQuery) => {
    const page = await log.page(query)
    const part = Math.min(1, (isDown ? page.next : page.previous) / Math.max(1, log.newest()))
    log.came(isDown ? part : 1 - part)
    return page
  }
  // The server has an index of streams.
  if (stream !== undefined) return byStream(log, find, stream, read, signal)
  const searched = window.copy(searchBounds)
  for (let edge = start; ; ) {
    // The whole log is searched, including output that arrived since.
    if (isDown ? searched.isAtEnd && searched.next >= log.newest() : searched.previous === 0) return null
    const page = await read(isDown ? { after: searched.next } : { before: searched.previous })
    if (signal.aborted) return undefined
    if (isDown) searched.append(page, page.entries.length === 0)
    else searched.prepend(page)
    const found = scan(searched, find, edge)
    if (found !== null) {
      window.adopt(searched)
      return found
    }
    // The stream may report output that the server does not return yet.
    if (isDown && page.entries.length === 0) return null
    if (isDown) edge = Math.max(edge, searched.ended)
  }
}

async function byStream(
  { window, page }: Searched,
  { direction, matches }: Find,
  stream: Stream,
  read: Searched['page'],
  signal: AbortSignal,
): Promise<number | null | undefined> {
  const isDown = direction === 'down'
  if (!isDown && window.previous === 0) return null
  let query: LogQuery = isDown ? { after: window.next } : { before: window.previous }
  for (;;) {
    const { entries, previous } = await read({ ...query, stream, size: 1 })
    if (signal.aborted) return undefined
    const [entry] = entries
    if (entry !== undefined) {
      const fresh = await around(entry.id, page)
      if (signal.aborted) return undefined
      window.adopt(fresh)
      for (let number = fresh.first; number < fresh.end; number++) {
        const line = fresh.line(number)
        if (line !== undefined && line.id >= entry.id && matches(line)) return number
      }
      return null
    }
    if (isDown || previous === 0) return null
    query = { before: previous }
  }
}

/** Reads a window with this entry in the middle. */
async function around(id: number, page: Searched['page']): Promise<LogWindow> {
  const earlier = await page({ before: id + 1, size: pageSize / 2 })
  const later = await page({ after: id, size: pageSize / 2 })
  const window = new LogWindow()
  window.reset(earlier, false)
  window.append(later, later.entries.length === 0)
  return window
}

/** The number of the first matching line from `start` on, or null. */
export function scan(
  lines: NumberedLines,
  { matches, direction }: Pick<Find, 'matches' | 'direction'>,
  start: number,
): number | null {
  const step = direction === 'down' ? 1 : -1
  const from = direction === 'down' ? Math.max(start, lines.first) : Math.min(start, lines.end - 1)
  for (let number = from; number >= lines.first && number < lines.end; number += step) {
    const line = lines.line(number)
    if (line !== undefined && matches(line)) return number
  }
  return null
}
