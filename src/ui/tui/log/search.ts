import type { LogPage, LogQuery, Stream } from '../../../core/protocol/http/logs.ts'
import type { LogLine } from './lines.ts'
import { LogWindow, pageSize } from './window.ts'

/** What is looked for in a log, and from which line. */
export interface Find {
  readonly matches: (line: LogLine) => boolean
  readonly direction: 'up' | 'down'
  /** The number of a line; it is looked at itself only where `isInclusive`. */
  readonly from: number
  readonly isInclusive?: boolean
  /** The only stream that can match. */
  readonly stream?: Stream
}

export interface Searched {
  /** What is shown of it; it is moved to what is found. */
  readonly window: LogWindow
  /** The id of its newest entry, as far as is known. */
  readonly newest: () => number
  readonly page: (query: LogQuery) => Promise<LogPage>
  readonly changed: () => void
}

/** What a search holds: a page and what its lines may go on in. A page put on at the front makes all lines anew. */
const searchBounds = { entries: 2 * pageSize, characters: 327_680 }

export class LogSearch {
  readonly #log: Searched
  readonly #find: Find
  #at = 0
  #isStopped = false

  constructor(log: Searched, find: Find) {
    this.#log = log
    this.#find = find
  }

  get at(): number {
    return this.#at
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  stop(): void {
    this.#isStopped = true
  }

  /** The number of the next line that matches, in the window then; null when there is none, undefined when stopped. */
  async run(): Promise<number | null | undefined> {
    const { direction, from, isInclusive = false, stream } = this.#find
    const { window } = this.#log
    const start = isInclusive ? from : from + (direction === 'down' ? 1 : -1)
    const near = scan(window, this.#find, start)
    if (near !== null) return near
    // Pages of nothing else are not read: the server finds the next one by its index.
    if (stream !== undefined) return this.#byStream(stream)
    const looked = window.copy(searchBounds)
    let edge = start
    for (;;) {
      if (this.#isThrough(looked)) return null
      const page = await this.#page(
        direction === 'down' ? { after: looked.next } : { before: looked.previous },
      )
      if (this.#isStopped) return undefined
      if (direction === 'down') looked.append(page, page.entries.length === 0)
      else looked.prepend(page)
      const found = scan(looked, this.#find, edge)
      if (found !== null) {
        window.adopt(looked)
        return found
      }
      // Whatever is known to have come: the server has no more of it.
      if (direction === 'down' && page.entries.length === 0) return null
      if (direction === 'down') edge = Math.max(edge, looked.ended)
      this.#log.changed()
    }
  }

  /** Nothing is left in its direction, not even what has come since the window was read. */
  #isThrough(looked: LogWindow): boolean {
    if (this.#find.direction === 'up') return looked.previous === 0
    return looked.isAtEnd && looked.next >= this.#log.newest()
  }

  async #byStream(stream: Stream): Promise<number | null | undefined> {
    const { direction } = this.#find
    const { window } = this.#log
    if (direction === 'up' && window.previous === 0) return null
    let query: LogQuery = direction === 'down' ? { after: window.next } : { before: window.previous }
    for (;;) {
      const page = await this.#page({ ...query, stream, size: 1 })
      if (this.#isStopped) return undefined
      const [entry] = page.entries
      if (entry !== undefined) return this.#around(entry.id)
      if (direction === 'down' || page.previous === 0) return null
      query = { before: page.previous }
      this.#log.changed()
    }
  }

  /** Puts the window around an entry; answers the line of it that matches. */
  async #around(id: number): Promise<number | null | undefined> {
    const earlier = await this.#log.page({ before: id + 1, size: pageSize / 2 })
    const later = await this.#log.page({ after: id, size: pageSize / 2 })
    if (this.#isStopped) return undefined
    const fresh = new LogWindow()
    fresh.reset(earlier, false)
    fresh.append(later, later.entries.length === 0)
    this.#log.window.adopt(fresh)
    for (let number = fresh.first; number < fresh.end; number++) {
      const line = fresh.line(number)
      if (line !== undefined && line.id >= id && this.#find.matches(line)) return number
    }
    return null
  }

  async #page(query: LogQuery): Promise<LogPage> {
    const page = await this.#log.page(query)
    const { direction } = this.#find
    const at = Math.min(
      1,
      (direction === 'down' ? page.next : page.previous) / Math.max(1, this.#log.newest()),
    )
    this.#at = direction === 'down' ? at : 1 - at
    return page
  }
}

function scan(window: LogWindow, { matches, direction }: Find, start: number): number | null {
  const step = direction === 'down' ? 1 : -1
  const from = direction === 'down' ? Math.max(start, window.first) : Math.min(start, window.end - 1)
  for (let number = from; number >= window.first && number < window.end; number += step) {
    const line = window.line(number)
    if (line !== undefined && matches(line)) return number
  }
  return null
}
