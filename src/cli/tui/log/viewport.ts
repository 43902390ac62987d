import { beginningOf, widthOf } from '../../text/width.ts'
import type { LogLine } from './lines.ts'

export interface NumberedLines {
  readonly first: number
  readonly end: number
  line(number: number): LogLine | undefined
}

export interface LogRow {
  readonly number: number
  /** 0 for the first row of the line. */
  readonly part: number
  readonly line: LogLine
  readonly text: string
}

interface Place {
  readonly number: number
  readonly part: number
}

/** Rows per line; long lines are cut when assembled. */
const mostParts = 1_000

/** Splits text into rows: at a blank in the second half of a row, or else between two characters. */
export function partsOf(text: string, width: number): string[] {
  const parts: string[] = []
  let rest = text
  while (widthOf(rest) > width && parts.length < mostParts) {
    const part = beginningOf(rest, width) || String.fromCodePoint(rest.codePointAt(0) ?? 32)
    // The blank may be just beyond the row; it is not shown.
    const blank = rest.lastIndexOf(' ', part.length)
    const isWorthIt = blank > part.length / 2
    parts.push(isWorthIt ? rest.slice(0, blank) : part)
    rest = rest.slice(isWorthIt ? blank + 1 : part.length)
  }
  return [...parts, rest]
}

/** Determines the visible rows of a log. Follows the end unless it has a position. */
export class Viewport {
  wrap = true
  /** First visible column; 0 while lines are wrapped. */
  column = 0
  #top: Place | null = null
  #width = 80
  #height = 20
  /** Columns for the text of a line, excluding its prefix. */
  #textWidth: (line: LogLine) => number = () => this.#width

  get isFollowing(): boolean {
    return this.#top === null
  }

  get height(): number {
    return this.#height
  }

  size(width: number, height: number, textWidth: (line: LogLine) => number): void {
    this.#width = Math.max(1, width)
    this.#height = Math.max(1, height)
    this.#textWidth = textWidth
  }

  follow(): void {
    this.#top = null
  }

  goTo(number: number): void {
    this.#top = { number, part: 0 }
  }

  /** Shows this line a third from the top, to show its context. */
  show(lines: NumberedLines, number: number): void {
    const shown = this.rows(lines)
    if (shown.some((row) => row.number === number)) {
      this.#hold(shown)
      return
    }
    this.#top = { number, part: 0 }
    this.scroll(lines, -Math.floor(this.#height / 3))
  }

  hold(lines: NumberedLines): void {
    this.#hold(this.rows(lines))
  }

  /** Scrolls by rows, down if positive; follows again on reaching the end if `isEnd`. */
  scroll(lines: NumberedLines, by: number, isEnd = false): void {
    const top = this.#top ?? this.#lastTop(lines)
    if (top === null) return
    const moved = this.#moved(lines, top, by)
    const last = this.#lastTop(lines)
    const isPast =
      last === null || moved.number > last.number || (moved.number === last.number && moved.part >= last.part)
    if (!isPast) this.#top = moved
    else this.#top = isEnd && by > 0 ? null : last
  }

  /** Rows from the top of the pane; may be fewer than its height. */
  rows(lines: NumberedLines): LogRow[] {
    const top = this.#kept(lines) ?? this.#lastTop(lines)
    if (top === null) return []
    const rows: LogRow[] = []
    for (let number = top.number; number < lines.end && rows.length < this.#height; number++) {
      const line = lines.line(number)
      if (line === undefined) break
      for (const [part, text] of this.#parts(line).entries())
        if ((number > top.number || part >= top.part) && rows.length < this.#height)
          rows.push({ number, part, line, text })
    }
    return rows
  }

  #hold(shown: readonly LogRow[]): void {
    const [first] = shown
    if (first !== undefined) this.#top = { number: first.number, part: first.part }
  }

  /** Its position, or the nearest one that is still in the log. */
  #kept(lines: NumberedLines): Place | null {
    if (this.#top === null) return null
    if (this.#top.number < lines.first) return { number: lines.first, part: 0 }
    const last = this.#lastTop(lines)
    return last !== null && this.#top.number >= lines.end ? last : this.#top
  }

  /** Top position that puts the last line at the bottom. */
  #lastTop(lines: NumberedLines): Place | null {
    if (lines.end === lines.first) return null
    const last = lines.end - 1
    const parts = this.#count(lines, last)
    return this.#moved(lines, { number: last, part: parts - 1 }, 1 - this.#height)
  }

  #moved(lines: NumberedLines, from: Place, by: number): Place {
    let { number, part } = from
    part = Math.min(part, this.#count(lines, number) - 1) + by
    while (part < 0 && number > lines.first) {
      number--
      part += this.#count(lines, number)
    }
    for (;;) {
      const count = this.#count(lines, number)
      if (part < count || number >= lines.end - 1) break
      part -= count
      number++
    }
    return { number, part: Math.max(0, Math.min(part, this.#count(lines, number) - 1)) }
  }

  #count(lines: NumberedLines, number: number): number {
    const line = lines.line(number)
    return line === undefined ? 1 : this.#parts(line).length
  }

  #parts(line: LogLine): string[] {
    const width = Math.max(1, this.#textWidth(line))
    if (this.wrap) return partsOf(line.text, width)
    return [line.text.slice(beginningOf(line.text, this.column).length)]
  }
}
