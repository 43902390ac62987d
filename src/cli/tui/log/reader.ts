import { mendable } from '../../../core/errors.ts'
import type { LogEntry, LogPage, LogQuery } from '../../../core/protocol/http/logs.ts'
import type { Stream } from '../../../core/tasks/task.ts'
import { pause } from '../../../net/backoff.ts'
import { type Find, searchLog } from './search.ts'
import { LogWindow, pageSize } from './window.ts'

export interface Selection {
  readonly hostId: number | null
  readonly stream: Stream | null
}

export interface ReaderOptions {
  readonly page: (query: LogQuery) => Promise<LogPage>
  /** The window or the jobs in progress changed. */
  readonly changed: () => void
  /** With `isTriedAgain`, the fault lasts until a page arrives. */
  readonly failed: (error: unknown, isTriedAgain: boolean) => void
}

const endOfLog = Number.MAX_SAFE_INTEGER
/** Milliseconds between reads of new output, so that a burst is read in few large pages. */
const burstPause = 60
const retryPause = 1_000
/** Bytes behind at which a follower skips to the end. */
const tooFarBehind = 1_048_576

type Job = 'tail' | 'head' | 'older' | 'newer'

/** Reads a log into its window, page by page, as the pane requests. */
export class LogReader {
  readonly window = new LogWindow()
  readonly #options: ReaderOptions
  #selection: Selection = { hostId: null, stream: null }
  /** Incremented with each selection: responses for earlier ones are dropped. */
  #generation = 0
  #jobs = new Set<Job>()
  #isWorking = false
  /** Id of the newest entry of this selection reported by the stream. */
  #newest = 0
  /** Counts gaps in the event stream; reset to 0 once the log is read to its end. */
  #unreported = 0
  #isLoaded = false
  #search: AbortController | null = null
  #searched = 0
  readonly #closing = new AbortController()

  constructor(options: ReaderOptions) {
    this.#options = options
  }

  get isLoaded(): boolean {
    return this.#isLoaded
  }

  /** Progress of a search in its direction, from 0 to 1; null without one. */
  get searching(): number | null {
    return this.#search === null ? null : this.#searched
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

  heard(id: number, hostId: number, stream: Stream): void {
    const { hostId: wanted, stream: only } = this.#selection
    if ((wanted !== null && wanted !== hostId) || (only !== null && only !== stream)) return
    this.#newest = Math.max(this.#newest, id)
  }

  /** Output may have arrived unreported: only reading to the end shows how far the log goes. */
  missed(): void {
    this.#unreported++
  }

  /** Whether there is, or may be, more than the window holds. */
  get isBehind(): boolean {
    return !this.window.isAtEnd || this.#heard > this.window.next
  }

  get #heard(): number {
    return this.#unreported > 0 ? Number.POSITIVE_INFINITY : this.#newest
  }

  want(job: Job): void {
    if (job === 'older' && this.window.previous === 0) return
    if (job === 'newer' && !this.isBehind) return
    if (!this.#isLoaded && (job === 'older' || job === 'newer')) return
    this.#jobs.add(job)
    void this.#work()
  }

  /** Reads the whole log; null if it exceeds `most` characters, undefined if the selection changes. */
  async readAll(most: number): Promise<LogEntry[] | null | undefined> {
    const generation = this.#generation
    const entries: LogEntry[] = []
    let size = 0
    try {
      for (let after = 0; ; ) {
        const page = await this.#page({ after })
        if (generation !== this.#generation || this.#isClosed) return undefined
        if (page.entries.length === 0) return entries
        entries.push(...page.entries)
        size += page.entries.reduce((sum, { data }) => sum + data.length, 0)
        if (size > most) return null
        after = page.next
      }
    } finally {
      this.#options.changed()
    }
  }

  stopFinding(): void {
    this.#search?.abort()
    this.#search = null
  }

  close(): void {
    this.#closing.abort()
    this.stopFinding()
    this.#jobs.clear()
  }

  /** Number of the next matching line, then in the window; null if none, undefined if stopped. */
  async find(find: Find): Promise<number | null | undefined> {
    this.stopFinding()
    const search = new AbortController()
    this.#search = search
    this.#searched = 0
    const log = {
      window: this.window,
      page: (query: LogQuery) => this.#page(query),
      newest: () => this.#heard,
      came: (part: number) => {
        this.#searched = part
        this.#options.changed()
      },
    }
    try {
      return await searchLog(log, find, search.signal)
    } catch (error) {
      if (!search.signal.aborted) this.#options.failed(error, false)
      return undefined
    } finally {
      if (this.#search === search) this.#search = null
      this.#options.changed()
    }
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    try {
      for (let job = this.#take(); job !== null && !this.#isClosed; job = this.#take()) {
        const generation = this.#generation
        try {
          await this.#carryOut(job, generation)
        } catch (error) {
          if (this.#isClosed) return
          if (generation === this.#generation) {
            this.#options.failed(error, mendable(error))
            // Only transient errors are retried.
            if (mendable(error)) this.#jobs.add(job)
            else this.#isLoaded = true
          }
          await pause(retryPause, this.#closing.signal)
        }
        this.#options.changed()
        if (job === 'newer') await pause(burstPause, this.#closing.signal)
      }
    } finally {
      this.#isWorking = false
    }
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  #take(): Job | null {
    for (const job of ['tail', 'head', 'older', 'newer'] as const) if (this.#jobs.delete(job)) return job
    return null
  }

  async #carryOut(job: Job, generation: number): Promise<void> {
    const isStale = () => this.#isClosed || generation !== this.#generation
    const unreported = this.#unreported
    const readToEnd = () => {
      if (unreported === this.#unreported) this.#unreported = 0
    }
    if (job === 'tail') {
      let page = await this.#page({ before: endOfLog })
      while (page.entries.length === 0 && page.previous > 0 && !isStale()) {
        const { next } = page
        page = { ...(await this.#page({ before: page.previous })), next }
      }
      if (isStale()) return
      this.window.reset(page, true)
      readToEnd()
      this.#newest = Math.max(this.#newest, page.next)
      this.#isLoaded = true
    } else if (job === 'head') {
      const page = await this.#page({ after: 0 })
      if (!isStale()) this.window.reset(page, false)
    } else if (job === 'older') {
      const { previous } = this.window
      const page = await this.#page({ before: previous })
      // A search may have moved the window.
      if (!isStale() && this.window.previous === previous) this.window.prepend(page)
    } else {
      const { next } = this.window
      const page = await this.#page({ after: next })
      if (isStale() || this.window.next !== next) return
      if (page.entries.length === 0) readToEnd()
      this.window.append(page, page.entries.length === 0 || page.next >= this.#heard)
    }
  }

  /** Whether output arrives faster than it is read. */
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
