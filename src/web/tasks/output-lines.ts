import { LineAssembler } from '../../cli/output/lines.ts'
import { sanitize } from '../../cli/text/sanitize.ts'
import type { LogEntry } from '../../core/protocol/http/logs.ts'

/** Lines kept of a task's output: a browser cannot hold all, so the oldest are dropped. */
export const mostLines = 5_000
/** Characters shown of a line. */
const longestShown = 4_000

export interface OutputLine {
  key: number
  hostId: number
  hostname: string
  stream: LogEntry['stream']
  /** Undefined for output of the script itself. */
  phase: LogEntry['phase']
  text: string
}

/** A line, and a log entry that it is part of. */
export interface HostLine {
  readonly about: LogEntry
  readonly text: string
}

/** Assembles log entries of all hosts into lines, and keeps the last. */
export class OutputLines {
  readonly #open = new HostLines()
  #lines: OutputLine[] = []
  #count = 0
  readonly #hosts = new Set<number>()
  #beganLater = false
  readonly #isWanted: (text: string) => boolean

  constructor(isWanted: (text: string) => boolean = () => true) {
    this.#isWanted = isWanted
  }

  /** The last complete lines; a new array after each change. */
  get lines(): readonly OutputLine[] {
    return this.#lines
  }

  get isLater(): boolean {
    return this.#beganLater || this.#count > this.#lines.length
  }

  push(entries: readonly LogEntry[]): void {
    const added: HostLine[] = []
    for (const entry of entries) {
      // A host's first piece is number 0 (contract §6).
      if (!this.#hosts.has(entry.hostId) && entry.sequence > 0) this.#beganLater = true
      this.#hosts.add(entry.hostId)
      added.push(...this.#open.push(entry))
    }
    this.#append(added)
  }

  /** Adds unfinished lines at the end of the output. */
  finish(): void {
    this.#append(this.#open.finish())
  }

  #line({ about: { hostId, hostname, stream, phase }, text }: HostLine): OutputLine {
    const shown = sanitize(text.length > longestShown ? `${text.slice(0, longestShown)} …` : text)
    return { key: this.#count++, hostId, hostname, stream, phase, text: shown }
  }

  #append(lines: readonly HostLine[]): void {
    const added = lines.filter(({ text }) => this.#isWanted(text)).map((line) => this.#line(line))
    if (added.length > 0) this.#lines = [...this.#lines, ...added].slice(-mostLines)
  }
}

/** Assembles log entries into lines, for each host and stream. The end of a phase ends a line. */
export class HostLines {
  readonly #open = new Map<string, { lines: LineAssembler; about: LogEntry }>()

  push(entry: LogEntry): HostLine[] {
    const key = `${entry.hostId} ${entry.stream}`
    const open = this.#open.get(key)
    const previous = open !== undefined && open.about.phase !== entry.phase ? restOf(open) : []
    const lines = open?.lines ?? new LineAssembler()
    this.#open.set(key, { lines, about: entry })
    return [...previous, ...lines.push(entry.data).map((text) => ({ about: entry, text }))]
  }

  /** Returns unfinished lines at the end of the output. */
  finish(): HostLine[] {
    const rests = [...this.#open.values()].flatMap(restOf)
    this.#open.clear()
    return rests
  }
}

function restOf({ lines, about }: { lines: LineAssembler; about: LogEntry }): HostLine[] {
  const text = lines.take()
  return text === '' ? [] : [{ about, text }]
}
