import { sanitizeLine } from '../../text/sanitize.ts'
import { withoutBidi } from '../../text/width.ts'
import type { Frame, Row, Size, Span, Style } from './screen.ts'

const escape = '\u001b'
const colours = { red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36 } as const

function codes(style: Style, isColoured: boolean): number[] {
  const found = []
  if (style.bold === true) found.push(1)
  if (style.dim === true) found.push(2)
  if (style.underline === true) found.push(4)
  if (style.inverse === true) found.push(7)
  if (style.fg !== undefined && isColoured) found.push(colours[style.fg])
  return found
}

/** Removes characters that move the cursor or reverse a line, whatever the source (reliability S06). */
const harmless = (text: string) => withoutBidi(sanitizeLine(text))

function paintSpan({ text: given, style = {} }: Span, isColoured: boolean): string {
  const text = harmless(given)
  const set = codes(style, isColoured)
  return set.length === 0 ? text : `${escape}[${set.join(';')}m${text}${escape}[0m`
}

/** Positions each segment absolutely, so that a differing character width does not shift others. */
export function paintRow(row: Row, isColoured: boolean): string {
  return row
    .map(({ at, spans }) => {
      const text = spans.map((span) => paintSpan(span, isColoured)).join('')
      return at === 0 ? text : `${escape}[${at + 1}G${text}`
    })
    .join('')
}

/** Draws only lines that differ from the last frame. */
export class Painter {
  readonly #isColoured: boolean
  #shown: string[] | null = null

  constructor(isColoured: boolean) {
    this.#isColoured = isColoured
  }

  forget(): void {
    this.#shown = null
  }

  /** Text to write for this frame; empty if nothing changed. */
  paint(frame: Frame, { rows }: Size): string {
    const lines = frame.rows.slice(0, rows).map((row) => paintRow(row, this.#isColoured))
    while (lines.length < rows) lines.push('')
    const shown = this.#shown
    this.#shown = lines
    const changed = lines.flatMap((line, at) =>
      shown?.[at] === line ? [] : [`${escape}[${at + 1};1H${escape}[0m${escape}[K${line}`],
    )
    const { cursor } = frame
    const placed =
      cursor === undefined ? `${escape}[?25l` : `${escape}[${cursor.y + 1};${cursor.x + 1}H${escape}[?25h`
    const whole = shown === null ? `${escape}[0m${escape}[2J` : ''
    if (changed.length === 0 && cursor === undefined) return ''
    // Synchronized output: terminals that support it show no half-drawn frame.
    return `${escape}[?2026h${whole}${changed.join('')}${placed}${escape}[?2026l`
  }
}
