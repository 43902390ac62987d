import type { TaskEvent } from '../../client/watch.ts'
import type { LogEntry } from '../../core/protocol/http/tasks.ts'
import { sanitize, wholeSequences } from '../text/sanitize.ts'
import { showTime } from '../text/time.ts'
import type { OutputFormat } from './format.ts'
import { LineAssembler } from './lines.ts'
import type { Sink } from './sink.ts'

interface LiveOptions {
  readonly stdout: Sink
  readonly stderr: Sink
  /** `HOST: ` before each line. */
  readonly prefix: boolean
  /** Control sequences of the hosts are let through. */
  readonly raw: boolean
  /** One host only: what has come of its unfinished lines is written as it is, for no other host breaks into them. */
  readonly alone: boolean
  readonly timestamps?: { readonly utc: boolean } | undefined
}

/** How long an unfinished line may wait for its end before its first part is shown, in milliseconds. */
const patience = 100
/** An unfinished line of a lone host that is longer waits no more. */
const longestWait = 64 * 1024

interface Source {
  readonly host: string
  readonly sink: Sink
  readonly lines: LineAssembler
  /** What stands before the line under way. */
  head: string
  /** The first part of the line under way has been written for good. */
  begun: boolean
  timer: NodeJS.Timeout | undefined
}

/**
 * Output as it comes, `HOST: line`. Lines are never torn: of many hosts a line is written whole; its unfinished first part
 * shows on a terminal only, and is taken back before anything else is written.
 */
export class LiveOutput implements OutputFormat {
  readonly #options: LiveOptions
  readonly #sources = new Map<string, Source>()
  /** The source whose unfinished line the cursor stands in. */
  #open: Source | undefined
  /** Writes go one after the other: a timer's must not come into the middle of an event's. */
  #turn: Promise<void> = Promise.resolve()

  constructor(options: LiveOptions) {
    this.#options = options
  }

  event(event: TaskEvent): Promise<void> | void {
    if (event.type === 'output') return this.#queue(() => this.#output(event.entry))
    if (event.type === 'host' && event.result.completedAt !== null) {
      const { hostname } = event.result
      return this.#queue(() => this.#finish((source) => source.host === hostname))
    }
  }

  end(): Promise<void> {
    return this.#queue(() => this.#finish(() => true))
  }

  #queue(work: () => Promise<void>): Promise<void> {
    this.#turn = this.#turn.then(work)
    return this.#turn
  }

  async #output(entry: LogEntry): Promise<void> {
    const { alone, prefix, raw, timestamps } = this.#options
    const source = this.#source(entry)
    if (alone && raw && !prefix && timestamps === undefined) {
      await source.sink.write(entry.data)
      return
    }
    clearTimeout(source.timer)
    source.timer = undefined
    const fresh = source.lines.rest === '' && !source.begun
    if (fresh) source.head = this.#head(entry)
    const lines = source.lines.pushText(entry.data)
    if (lines !== undefined) {
      await this.#makeRoom(source)
      const head = source.begun ? '' : source.head
      source.begun = false
      source.head = this.#head(entry)
      this.#open = undefined
      const text = this.#clean(lines)
      const others = source.head
      await source.sink.write(`${head}${others === '' ? text : text.replaceAll('\n', () => `\n${others}`)}\n`)
    }
    if (source.lines.rest === '') return
    if (source.begun || (alone && source.lines.rest.length > longestWait)) await this.#showPart(source)
    else if (alone || (source.sink.isTTY === true && process.env['TERM'] !== 'dumb'))
      source.timer = setTimeout(() => void this.#queue(() => this.#showPart(source)), patience)
  }

  /** Shows what has come of an unfinished line: of a lone host for good, else until the next write. */
  async #showPart(source: Source): Promise<void> {
    const { alone, raw } = this.#options
    const { rest } = source.lines
    const part = raw ? rest : wholeSequences(rest)
    if (part === '') return
    await this.#makeRoom(source)
    const head = source.begun ? '' : source.head
    this.#open = source
    if (alone) {
      source.begun = true
      await source.sink.write(head + this.#clean(source.lines.take(part.length)))
    } else {
      const width = Math.max(1, (source.sink.columns ?? 80) - 1)
      await source.sink.write((head + this.#clean(part)).slice(0, width))
    }
  }

  /** Leaves the cursor where `next` may write: on an empty line, or in its own unfinished one. */
  async #makeRoom(next: Source): Promise<void> {
    const open = this.#open
    if (open === undefined || (open === next && open.begun)) return
    this.#open = undefined
    if (open.begun) {
      open.begun = false
      await open.sink.write('\n')
    } else await open.sink.write('\r\u001b[K')
  }

  async #finish(which: (source: Source) => boolean): Promise<void> {
    for (const source of this.#sources.values()) {
      if (!which(source)) continue
      clearTimeout(source.timer)
      if (source.lines.rest === '' && !source.begun) continue
      await this.#makeRoom(source)
      // Without a prefix a lone host's output is passed on as it is: without a line end that it did not write.
      const end = this.#options.alone && !this.#options.prefix ? '' : '\n'
      const head = source.begun ? '' : source.head
      await source.sink.write(head + this.#clean(source.lines.take()) + end)
      source.begun = false
      this.#open = undefined
    }
  }

  #source(entry: LogEntry): Source {
    const key = `${entry.hostId} ${entry.stream}`
    let source = this.#sources.get(key)
    if (source === undefined) {
      const sink = entry.stream === 'stdout' ? this.#options.stdout : this.#options.stderr
      source = {
        host: entry.hostname,
        sink,
        lines: new LineAssembler(),
        head: '',
        begun: false,
        timer: undefined,
      }
      this.#sources.set(key, source)
    }
    return source
  }

  #head(entry: LogEntry): string {
    const { prefix, timestamps } = this.#options
    const time = timestamps === undefined ? '' : `${showTime(entry.timestamp, timestamps.utc)} `
    return time + (prefix ? `${sanitize(entry.hostname)}: ` : '')
  }

  #clean(text: string): string {
    return this.#options.raw ? text : sanitize(text)
  }
}
