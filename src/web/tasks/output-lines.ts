import type { LogEntry } from '../../core/protocol/http/logs.ts'
import { LineAssembler } from '../../ui/output/lines.ts'
import { sanitize } from '../../ui/text/sanitize.ts'

export interface OutputLine {
  key: number
  hostId: number
  hostname: string
  stream: LogEntry['stream']
  text: string
}

/** What is kept of a task's output: past that the earliest goes, as a browser can't hold all that a script may say. */
export const mostLines = 5_000
/** What is shown of a line. */
const longestShown = 4_000

/** Puts the pieces of all hosts together into the last lines. */
export class OutputLines {
  #assemblers = new Map<string, { lines: LineAssembler; about: LogEntry }>()
  #lines: OutputLine[] = []
  #count = 0
  readonly #hosts = new Set<number>()
  #beganLater = false
  readonly #isWanted: (text: string) => boolean

  /** `isWanted`: which lines are kept. */
  constructor(isWanted: (text: string) => boolean = () => true) {
    this.#isWanted = isWanted
  }

  /** Whole lines so far, the last of them; a new list after each change. */
  get lines(): readonly OutputLine[] {
    return this.#lines
  }

  /** Whether there was something before those. */
  get isLater(): boolean {
    return this.#beganLater || this.#count > this.#lines.length
  }

  push(entries: readonly LogEntry[]): void {
    const added: OutputLine[] = []
    for (const entry of entries) {
      // A host's first piece is number 0 (contract §6).
      if (!this.#hosts.has(entry.hostId) && entry.sequence > 0) this.#beganLater = true
      this.#hosts.add(entry.hostId)
      const key = `${entry.hostId} ${entry.stream}`
      const lines = this.#assemblers.get(key)?.lines ?? new LineAssembler()
      this.#assemblers.set(key, { lines, about: entry })
      for (const text of lines.push(entry.data)) if (this.#isWanted(text)) added.push(this.#line(entry, text))
    }
    this.#append(added)
  }

  /** What was left without a line's end, once no more comes. */
  finish(): void {
    const rests = [...this.#assemblers.values()].map(({ lines, about }) => ({ about, text: lines.take() }))
    this.#assemblers.clear()
    this.#append(
      rests
        .filter(({ text }) => text !== '' && this.#isWanted(text))
        .map(({ about, text }) => this.#line(about, text)),
    )
  }

  #line({ hostId, hostname, stream }: LogEntry, text: string): OutputLine {
    const shown = sanitize(text.length > longestShown ? `${text.slice(0, longestShown)} …` : text)
    return { key: this.#count++, hostId, hostname, stream, text: shown }
  }

  #append(added: OutputLine[]): void {
    if (added.length > 0) this.#lines = [...this.#lines, ...added].slice(-mostLines)
  }
}
