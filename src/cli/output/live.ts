import type { TaskEvent } from '../../client/watch.ts'
import { Mutex } from '../../core/mutex.ts'
import type { LogEntry } from '../../core/protocol/http/logs.ts'
import type { Stream } from '../../core/tasks/task.ts'
import { sanitize, wholeSequences } from '../text/sanitize.ts'
import { showTime } from '../text/time.ts'
import type { Colors, FormatOptions, OutputFormat, Sink } from './format.ts'
import { LineAssembler, phaseMark } from './lines.ts'

/** Milliseconds to wait for the end of a line before its first part is shown. */
const patience = 100
/** Characters of a lone host's unfinished line that are shown without waiting. */
const longestWait = 64 * 1024
/** Characters kept of an unfinished line of one of several hosts, enough for the widest screen. */
const widestPart = 1000

/** The 256-colour entries with a contrast of about 4 or more on white and on black; red is reserved for stderr. */
const manyColors = [130, 64, 28, 29, 31, 27, 63, 98, 129, 133, 164, 162].map((color) => `38;5;${color}`)
const basicColors = ['36', '35', '32', '33']

interface Source {
  readonly host: string
  readonly phase: LogEntry['phase']
  readonly sink: Sink
  readonly lines: LineAssembler
  readonly prefix: string
  head: string
  begun: boolean
  timer: NodeJS.Timeout | undefined
}

type LiveOptions = Pick<
  FormatOptions,
  'stdout' | 'stderr' | 'together' | 'alone' | 'prefix' | 'raw' | 'timestamps' | 'unfinished'
>

/**
 * Live output as `HOST: line`. Lines are never torn: with several hosts, a line is written whole, and its
 * unfinished part appears only in the status line. A single host's part is written after a short wait.
 */
export class LiveOutput implements OutputFormat {
  readonly #options: LiveOptions
  readonly #sources = new Map<string, Source>()
  /** Source whose unfinished line holds the cursor, by sink. */
  readonly #open = new Map<Sink, Source>()
  #aside: Source | undefined
  /** Serializes writes, so that a timer's write does not interrupt an event's. */
  readonly #writes = new Mutex()
  /** Error of a timer's write; the next event rejects with it. */
  #failure: Error | undefined

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
    return this.#writes.run(() => {
      if (this.#failure !== undefined) throw this.#failure
      return work()
    })
  }

  async #output(entry: LogEntry): Promise<void> {
    const { alone, prefix, raw, timestamps } = this.#options
    const source = await this.#source(entry)
    if (alone && raw && !prefix && timestamps === undefined) {
      await source.sink.write(entry.data)
      return
    }
    clearTimeout(source.timer)
    source.timer = undefined
    const fresh = source.lines.rest === '' && !source.begun
    if (fresh) source.head = this.#head(source, entry)
    const lines = source.lines.pushText(entry.data)
    if (lines !== undefined) {
      this.#putAside(source, '')
      await this.#makeRoom(source)
      const head = source.begun ? '' : source.head
      source.begun = false
      source.head = this.#head(source, entry)
      this.#open.delete(this.#place(source))
      const text = this.#clean(lines)
      await source.sink.write(`${head}${text.split('\n').join(`\n${source.head}`)}\n`)
    }
    if (source.lines.rest === '') return
    if (source.begun || (alone && source.lines.rest.length > longestWait)) await this.#showPart(source)
    else if (alone || this.#options.unfinished !== undefined)
      source.timer = setTimeout(() => this.#showLater(source), patience)
  }

  #showLater(source: Source): void {
    this.#queue(() => this.#showPart(source)).catch((error: unknown) => {
      this.#failure ??= error as Error
    })
  }

  /** Shows an unfinished line: a lone host's in the output, others in the status line. */
  async #showPart(source: Source): Promise<void> {
    const { alone, raw } = this.#options
    const { rest } = source.lines
    if (!alone) {
      this.#putAside(source, `${source.host}: ${rest.slice(0, widestPart)}`)
      return
    }
    const part = raw ? rest : wholeSequences(rest)
    if (part === '') return
    await this.#makeRoom(source)
    const head = source.begun ? '' : source.head
    this.#open.set(this.#place(source), source)
    source.begun = true
    await source.sink.write(head + this.#clean(source.lines.take(part.length)))
  }

  #putAside(source: Source, text: string): void {
    if (text === '' && this.#aside !== source) return
    this.#aside = text === '' ? undefined : source
    this.#options.unfinished?.(sanitize(text))
  }

  /** The sink for a source; always stdout if both streams share a place. */
  #place({ sink }: Source): Sink {
    return this.#options.together ? this.#options.stdout : sink
  }

  /** Moves the cursor to an empty line, or to the unfinished line of `next`. */
  async #makeRoom(next: Source): Promise<void> {
    const place = this.#place(next)
    const open = this.#open.get(place)
    if (open === undefined || open === next) return
    this.#open.delete(place)
    open.begun = false
    await open.sink.write('\n')
  }

  async #finish(which: (source: Source) => boolean): Promise<void> {
    for (const source of this.#sources.values()) {
      if (!which(source)) continue
      clearTimeout(source.timer)
      this.#putAside(source, '')
      if (source.lines.rest === '' && !source.begun) continue
      await this.#makeRoom(source)
      // A lone host's output without prefix is passed on verbatim: add no line end.
      const end = this.#options.alone && !this.#options.prefix ? '' : '\n'
      const head = source.begun ? '' : source.head
      await source.sink.write(head + this.#clean(source.lines.take()) + end)
      source.begun = false
      this.#open.delete(this.#place(source))
    }
  }

  async #source(entry: LogEntry): Promise<Source> {
    const { phase } = entry
    const key = `${entry.hostId} ${entry.stream} ${phase ?? ''}`
    let source = this.#sources.get(key)
    if (source === undefined) {
      // The unfinished line of an earlier phase gets no further output.
      if (phase !== undefined)
        await this.#finish((other) => other.host === entry.hostname && other.phase !== phase)
      const sink = entry.stream === 'stdout' ? this.#options.stdout : this.#options.stderr
      const host = sanitize(entry.hostname) + (phase === undefined ? '' : ` ${phaseMark(phase)}`)
      source = {
        host: entry.hostname,
        phase,
        sink,
        lines: new LineAssembler(),
        prefix: this.#options.prefix ? hostPrefix(host, entry.stream, sink.colors ?? 'none') : '',
        head: '',
        begun: false,
        timer: undefined,
      }
      this.#sources.set(key, source)
    }
    return source
  }

  #head(source: Source, entry: LogEntry): string {
    const { timestamps } = this.#options
    return timestamps === undefined
      ? source.prefix
      : `${showTime(entry.timestamp, timestamps.utc)} ${source.prefix}`
  }

  #clean(text: string): string {
    return this.#options.raw ? text : sanitize(text)
  }
}

/**
 * `HOST: ` before a line, in a colour per name; stderr underlined with a red colon, to differ without
 * colours, too.
 */
export function hostPrefix(hostname: string, stream: Stream, colors: Colors): string {
  if (colors === 'none') return `${hostname}: `
  const palette = colors === 'many' ? manyColors : basicColors
  const color = palette[hashOf(hostname) % palette.length] ?? '36'
  if (stream === 'stdout') return `\u001b[${color}m${hostname}:\u001b[0m `
  return `\u001b[4;${color}m${hostname}\u001b[0m\u001b[1;31m:\u001b[0m `
}

/** FNV-1a, so that a name has the same colour in every run. */
function hashOf(name: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  return hash >>> 0
}
