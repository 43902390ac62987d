import { setTimeout as delay } from 'node:timers/promises'
import { mendable } from '../../../client/http/event-stream.ts'
import type { LogPage, LogQuery, Stream } from '../../../core/protocol/http/tasks.ts'
import type { LogLine } from './lines.ts'
import { LogWindow } from './window.ts'

export interface Selection {
  /** Null for all hosts. */
  readonly hostId: number | null
  /** Null for both. */
  readonly stream: Stream | null
}

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

export interface ReaderOptions {
  readonly page: (query: LogQuery) => Promise<LogPage>
  /** The window has changed, or what is being read. */
  readonly changed: () => void
  /** What `isTriedAgain` is, until a page comes. */
  readonly failed: (error: unknown, isTriedAgain: boolean) => void
}

const pageSize = 500
const endOfLog = Number.MAX_SAFE_INTEGER
/** What a search holds: a page and what its lines may go on in. A page put on at the front makes all lines anew. */
const searchBounds = { entries: 2 * pageSize, characters: 327_680 }
/** Between two reads of what comes: a burst makes few large pages and not many small ones. */
const pause = 60
const retryPause = 1_000
/** A follower so many bytes behind goes on at the end: nobody reads what runs through that fast. */
const tooFarBehind = 1_048_576

type Job = 'tail' | 'head' | 'older' | 'newer'

/** Reads a log into its window, one page after the other, as the pane asks for them. */
export class LogReader {
  readonly window = new LogWindow()
  readonly #options: ReaderOptions
  #selection: Selection = { hostId: null, stream: null }
  /** Ascends with every selection: what was asked for an earlier one is not heeded. */
  #generation = 0
  #jobs = new Set<Job>()
  #isWorking = false
  /** The id of the newest entry of this selection that was heard of. */
  #newest = 0
  #isLoaded = false
  #search: { readonly abort: AbortController; at: number } | null = null
  #closed = false

  constructor(options: ReaderOptions) {
    this.#options = options
  }

  /** False until the first page of a selection has come. */
  get isLoaded(): boolean {
    return this.#isLoaded
  }

  /** How far in its direction a search has come, from 0 to 1; null without one. */
  get searching(): number | null {
    return this.#search?.at ?? null
  }

  select(selection: Selection): void {
    this.stopFinding()
    this.#selection = selection
    this.#generation++
    this.#isLoaded = false
    this.window.reset({ taskId: '', entries: [], next: 0, previous: 0 }, false)
    this.#jobs = new Set(['tail'])
    void this.#work()
  }

  /** There is output up to this id. */
  heard(id: number, hostId: number, stream: Stream): void {
    const { hostId: wanted, stream: only } = this.#selection
    if ((wanted !== null && wanted !== hostId) || (only !== null && only !== stream)) return
    this.#newest = Math.max(this.#newest, id)
  }

  /** Whether more than the window holds is known of. */
  get isBehind(): boolean {
    return !this.window.isAtEnd || this.#newest > this.window.next
  }

  want(job: Job): void {
    if (job === 'older' && this.window.previous === 0) return
    if (job === 'newer' && !this.isBehind) return
    if (!this.#isLoaded && (job === 'older' || job === 'newer')) return
    this.#jobs.add(job)
    void this.#work()
  }

  stopFinding(): void {
    this.#search?.abort.abort()
    this.#search = null
  }

  close(): void {
    this.#closed = true
    this.stopFinding()
    this.#jobs.clear()
  }

  /** The number of the next line that matches, in the window then; null when there is none, undefined when stopped. */
  async find(find: Find): Promise<number | null | undefined> {
    this.stopFinding()
    const abort = new AbortController()
    const search = { abort, at: 0 }
    this.#search = search
    try {
      return await this.#found(find, search)
    } catch (error) {
      if (!abort.signal.aborted) this.#options.failed(error, false)
      return undefined
    } finally {
      if (this.#search === search) this.#search = null
      this.#options.changed()
    }
  }

  async #found(
    find: Find,
    search: { abort: AbortController; at: number },
  ): Promise<number | null | undefined> {
    const { direction, from, isInclusive = false } = find
    const generation = this.#generation
    const start = isInclusive ? from : from + (direction === 'down' ? 1 : -1)
    const near = scan(this.window, find, start)
    if (near !== null) return near
    // Pages of nothing else are not read: the server finds the next one by its index.
    if (find.stream !== undefined) return this.#foundByStream(find, find.stream, search, generation)
    const looked = this.window.copy(searchBounds)
    let edge = start
    for (;;) {
      if (direction === 'down' ? looked.isAtEnd : looked.previous === 0) return null
      const query = direction === 'down' ? { after: looked.next } : { before: looked.previous }
      const page = await this.#page(query)
      if (search.abort.signal.aborted || generation !== this.#generation) return undefined
      search.at = this.#way(direction, page)
      if (direction === 'down') looked.append(page, page.entries.length === 0)
      else looked.prepend(page)
      const found = scan(looked, find, edge)
      if (found !== null) {
        this.window.adopt(looked)
        return found
      }
      if (direction === 'down') edge = Math.max(edge, looked.ended)
      this.#options.changed()
    }
  }

  #way(direction: Find['direction'], { next, previous }: LogPage): number {
    const at = Math.min(1, (direction === 'down' ? next : previous) / Math.max(1, this.#newest))
    return direction === 'down' ? at : 1 - at
  }

  async #foundByStream(
    find: Find,
    stream: Stream,
    search: { abort: AbortController; at: number },
    generation: number,
  ): Promise<number | null | undefined> {
    if (find.direction === 'up' && this.window.previous === 0) return null
    let query: LogQuery =
      find.direction === 'down' ? { after: this.window.next } : { before: this.window.previous }
    for (;;) {
      const page = await this.#page({ ...query, stream, size: 1 })
      if (search.abort.signal.aborted || generation !== this.#generation) return undefined
      search.at = this.#way(find.direction, page)
      const [entry] = page.entries
      if (entry !== undefined) return this.#around(entry.id, find, generation)
      if (find.direction === 'down' || page.previous === 0) return null
      query = { before: page.previous }
      this.#options.changed()
    }
  }

  /** Puts the window around an entry; answers the line of it that matches. */
  async #around(id: number, find: Find, generation: number): Promise<number | null | undefined> {
    const earlier = await this.#page({ before: id + 1, size: pageSize / 2 })
    const later = await this.#page({ after: id, size: pageSize / 2 })
    if (generation !== this.#generation) return undefined
    const fresh = new LogWindow()
    fresh.reset(earlier, false)
    fresh.append(later, later.entries.length === 0)
    this.window.adopt(fresh)
    for (let number = fresh.first; number < fresh.end; number++) {
      const line = fresh.line(number)
      if (line !== undefined && line.id >= id && find.matches(line)) return number
    }
    return null
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    try {
      for (let job = this.#take(); job !== null; job = this.#take()) {
        const generation = this.#generation
        try {
          await this.#carryOut(job, generation)
        } catch (error) {
          if (this.#closed) return
          if (generation === this.#generation) {
            this.#options.failed(error, mendable(error))
            // Only what waiting can mend is tried again.
            if (mendable(error)) this.#jobs.add(job)
            else this.#isLoaded = true
          }
          await delay(retryPause)
        }
        this.#options.changed()
        if (job === 'newer') await delay(pause)
      }
    } finally {
      this.#isWorking = false
    }
  }

  #take(): Job | null {
    for (const job of ['tail', 'head', 'older', 'newer'] as const) if (this.#jobs.delete(job)) return job
    return null
  }

  async #carryOut(job: Job, generation: number): Promise<void> {
    const isStale = () => this.#closed || generation !== this.#generation
    if (job === 'tail') {
      let page = await this.#page({ before: endOfLog })
      while (page.entries.length === 0 && page.previous > 0 && !isStale()) {
        const { next } = page
        page = { ...(await this.#page({ before: page.previous })), next }
      }
      if (isStale()) return
      this.window.reset(page, true)
      this.#newest = Math.max(this.#newest, page.next)
      this.#isLoaded = true
    } else if (job === 'head') {
      const page = await this.#page({ after: 0 })
      if (!isStale()) this.window.reset(page, false)
    } else if (job === 'older') {
      const page = await this.#page({ before: this.window.previous })
      if (!isStale()) this.window.prepend(page)
    } else {
      const page = await this.#page({ after: this.window.next })
      if (isStale()) return
      this.window.append(page, page.entries.length === 0 || page.next >= this.#newest)
    }
  }

  /** Whether what comes runs through faster than it is read. */
  get isTooFarBehind(): boolean {
    return this.#isLoaded && this.#newest - this.window.next > tooFarBehind
  }

  #page(query: LogQuery): Promise<LogPage> {
    const { hostId, stream } = this.#selection
    return this.#options.page({
      size: pageSize,
      ...(hostId === null ? {} : { hostId }),
      ...(stream === null ? {} : { stream }),
      ...query,
    })
  }
}

/** The nearest line that matches, from `start` on. */
function scan(window: LogWindow, { matches, direction }: Find, start: number): number | null {
  const step = direction === 'down' ? 1 : -1
  const from = direction === 'down' ? Math.max(start, window.first) : Math.min(start, window.end - 1)
  for (let number = from; number >= window.first && number < window.end; number += step) {
    const line = window.line(number)
    if (line !== undefined && matches(line)) return number
  }
  return null
}
