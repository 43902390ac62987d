import type { LogEntry, LogPage } from '../../../core/protocol/http/logs.ts'
import { type LogLine, LogLines } from './lines.ts'

export interface WindowBounds {
  readonly entries: number
  readonly characters: number
}

/** Entries per page, the server's limit (contract §5). */
export const pageSize = 500
export const windowBounds: WindowBounds = { entries: 4 * pageSize, characters: 1_048_576 }

interface CachedEntry {
  readonly entry: LogEntry
  readonly ends: number
}

/**
 * Consecutive entries of a log and their lines. A page added at one end drops excess at the other. Lines are
 * numbered by their end, so a line whose start arrives later keeps its number.
 */
export class LogWindow {
  first = 0
  /** Value for `before`; 0 at the beginning of the log. */
  previous = 0
  /** Value for `after`. */
  next = 0
  /** Whether the last read page reached the end. */
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

  /** Number after the last line, including unterminated lines at the end of the log. */
  get end(): number {
    return this.first + this.#lines.length + this.#openLines().length
  }

  /** Number after the last terminated line. */
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
      // Drop the end: the beginning was asked for.
      isCut ||= this.#entries.length >= this.#bounds.entries || this.characters > this.#bounds.characters
      if (isCut) continue
      this.#push(entry)
    }
    if (isCut) {
      this.next = this.#entries.at(-1)?.entry.id ?? this.next
      this.isAtEnd = false
    }
    // Lines that end in the prepended page.
    for (const { ends } of this.#entries.slice(0, page.entries.length)) this.first -= ends
  }

  /** Copies the window, so that the copy can move independently. */
  copy(bounds: WindowBounds = this.#bounds): LogWindow {
    const copied = new LogWindow(bounds)
    for (const { entry } of this.#entries) copied.#push(entry)
    copied.first = this.first
    copied.previous = this.previous
    copied.next = this.next
    copied.isAtEnd = this.isAtEnd
    return copied
  }

  /** Takes over the content of another window; its lines keep their numbers. */
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
