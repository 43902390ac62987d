import { beginningOf, widthOf } from '../../text/width.ts'
import type { LogLine } from './lines.ts'

export interface NumberedLines {
  readonly first: number
  readonly end: number
  line(number: number): LogLine | undefined
}

export interface LogRow {
  readonly number: number
  /** 0 for the row in which the line begins. */
  readonly part: number
  readonly line: LogLine
  readonly text: string
}

interface Place {
  readonly number: number
  readonly part: number
}

/** A line takes no more rows than that: the longest ones are cut by their assembler. */
const mostParts = 1_000

/** A text in rows of this width, broken at a blank in the second half of a row, else between two characters. */
export function partsOf(text: string, width: number): string[] {
  const parts: string[] = []
  let rest = text
  while (widthOf(rest) > width && parts.length < mostParts) {
    const part = beginningOf(rest, width) || String.fromCodePoint(rest.codePointAt(0) ?? 32)
    // The blank at which it is broken may be the first one that does not fit; it is not shown.
    const blank = rest.lastIndexOf(' ', part.length)
    const isWorthIt = blank > part.length / 2
    parts.push(isWorthIt ? rest.slice(0, blank) : part)
    rest = rest.slice(isWorthIt ? blank + 1 : part.length)
  }
  return [...parts, rest]
}

/** Which rows of a log its pane shows. Without a place of its own it follows the end. */
export class Viewport {
  wrap = true
  /** The first column that is shown; 0 while lines are wrapped. */
  column = 0
  #top: Place | null = null
  #width = 80
  #height = 20
  /** How many columns the text of a line has, beside what stands before it. */
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

  /** Puts this line a third from the top, where one sees what leads to it. */
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

  /** By so many rows, down when positive; it follows again when it comes to the end and `isEnd` says that it is one. */
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

  /** From the top of the pane; fewer than it has where there are no more. */
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

  /** Its place, or the nearest one where the log lets go of it. */
  #kept(lines: NumberedLines): Place | null {
    if (this.#top === null) return null
    if (this.#top.number < lines.first) return { number: lines.first, part: 0 }
    const last = this.#lastTop(lines)
    return last !== null && this.#top.number >= lines.end ? last : this.#top
  }

  /** The top at which the last line stands at the bottom. */
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
