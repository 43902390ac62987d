import type { LogEntry, LogPage } from '../../../core/protocol/http/logs.ts'
import { type LogLine, LogLines } from './lines.ts'

export interface WindowBounds {
  readonly entries: number
  readonly characters: number
}

/** Entries of a page, at most as many as the server gives (contract §5). */
export const pageSize = 500
export const windowBounds: WindowBounds = { entries: 4 * pageSize, characters: 1_048_576 }

interface CachedEntry {
  readonly entry: LogEntry
  readonly ends: number
}

/**
 * A part of a log: consecutive entries and their lines. Pages are added at either end, and what is then too much is dropped
 * at the other. A line keeps its number for as long as it is held, whatever is added: lines are numbered where they end,
 * so a line whose beginning comes with an earlier page becomes longer and not another.
 */
export class LogWindow {
  first = 0
  /** Goes back to the server as `before`; 0 at the beginning of the log. */
  previous = 0
  /** Goes back as `after`. */
  next = 0
  /** Whether nothing followed when the last page was read. */
  isAtEnd = false
  characters = 0
  readonly #bounds: WindowBounds
  #entries: CachedEntry[] = []
  #lines: LogLine[] = []
  #assembled = new LogLines()
  #open: LogLine[] | null = null

  constructor(bounds: WindowBounds = windowBounds) {
    this.#bounds = bounds
  }

  /** The number after that of the last one. Lines without an end are the last ones, at the end of the log. */
  get end(): number {
    return this.first + this.#lines.length + this.#openLines().length
  }

  /** The number after that of the last line that has an end. */
  get ended(): number {
    return this.first + this.#lines.length
  }

  get entries(): number {
    return this.#entries.length
  }

  line(number: number): LogLine | undefined {
    const at = number - this.first
    return this.#lines[at] ?? this.#openLines()[at - this.#lines.length]
  }

  reset(page: LogPage, isAtEnd: boolean): void {
    this.#entries = []
    this.#lines = []
    this.#assembled = new LogLines()
    this.characters = 0
    this.first = 0
    this.previous = page.previous
    this.append(page, isAtEnd)
  }

  append(page: LogPage, isAtEnd: boolean): void {
    for (const entry of page.entries) this.#push(entry)
    this.next = page.next
    this.isAtEnd = isAtEnd
    this.#open = null
    let dropped = 0
    let ends = 0
    while (this.#isTooLarge(dropped)) {
      ends += this.#entries[dropped]?.ends ?? 0
      this.characters -= this.#entries[dropped]?.entry.data.length ?? 0
      dropped++
    }
    if (dropped === 0) return
    this.#entries.splice(0, dropped)
    this.#lines.splice(0, ends)
    this.first += ends
    this.previous = this.#entries[0]?.entry.id ?? this.previous
  }

  prepend(page: LogPage): void {
    const entries = [...page.entries, ...this.#entries.map(({ entry }) => entry)]
    this.#entries = []
    this.#lines = []
    this.#assembled = new LogLines()
    this.characters = 0
    this.#open = null
    this.previous = page.previous
    let isCut = false
    for (const entry of entries) {
      // The end is let go of: what was asked for is the beginning.
      isCut ||= this.#entries.length >= this.#bounds.entries || this.characters > this.#bounds.characters
      if (isCut) continue
      this.#push(entry)
    }
    if (isCut) {
      this.next = this.#entries.at(-1)?.entry.id ?? this.next
      this.isAtEnd = false
    }
    // All lines that end in what was put on.
    for (const { ends } of this.#entries.slice(0, page.entries.length)) this.first -= ends
  }

  /** Another window on the same part, which then moves by itself. */
  copy(bounds: WindowBounds = this.#bounds): LogWindow {
    const copied = new LogWindow(bounds)
    for (const { entry } of this.#entries) copied.#push(entry)
    copied.first = this.first
    copied.previous = this.previous
    copied.next = this.next
    copied.isAtEnd = this.isAtEnd
    return copied
  }

  /** Shows what the other one does; its lines keep their numbers. */
  adopt(other: LogWindow): void {
    this.#entries = other.#entries
    this.#lines = other.#lines
    this.#assembled = other.#assembled
    this.#open = null
    this.characters = other.characters
    this.first = other.first
    this.previous = other.previous
    this.next = other.next
    this.isAtEnd = other.isAtEnd
  }

  #openLines(): LogLine[] {
    if (!this.isAtEnd) return []
    this.#open ??= this.#assembled.open()
    return this.#open
  }

  #push(entry: LogEntry): void {
    const lines = this.#assembled.push(entry)
    this.#entries.push({ entry, ends: lines.length })
    for (const line of lines) this.#lines.push(line)
    this.characters += entry.data.length
  }

  #isTooLarge(dropped: number): boolean {
    const count = this.#entries.length - dropped
    return count > 1 && (count > this.#bounds.entries || this.characters > this.#bounds.characters)
  }
}
