import { sanitize } from '../../text/sanitize.ts'
import { widthOf } from '../../text/width.ts'
import { partsOf } from '../log/viewport.ts'
import type { Frame, Row, Segment, Size, Span } from '../screen/screen.ts'
import { fit, fitSpans, type Glyph, glyph, type Keys, widthOfSpans } from './drawing.ts'
import { stepOf } from './list.ts'

/** Rows left free above and below, and the box's own edges. */
const reportMargin = 4

const severityTones = { error: 'red', warning: 'yellow', ok: 'green' } as const

/** Draws a box of lines over the middle of a frame. */
export function overlay(frame: Frame, { cols, rows }: Size, lines: readonly (readonly Span[])[]): Frame {
  const wide = Math.min(cols - 2, Math.max(...lines.map(widthOfSpans)) + 4)
  const shown = lines.slice(0, Math.max(0, rows - 4))
  const high = shown.length + 2
  if (wide < 4 || high > rows) return frame
  const left = Math.floor((cols - wide) / 2)
  const top = Math.floor((rows - high) / 2)
  const line = glyph('line').repeat(wide - 2)
  const edge = (from: Glyph, to: Glyph): Span[] => [{ text: `${glyph(from)}${line}${glyph(to)}` }]
  const box: readonly (readonly Span[])[] = [
    edge('topLeft', 'topRight'),
    ...shown.map((each) => boxed(each, wide)),
    edge('bottomLeft', 'bottomRight'),
  ]
  const boxRows = frame.rows.map((row, at): Row => {
    const spans = box[at - top]
    if (spans === undefined) return row
    const over: Segment = { at: left, spans }
    return [...row, over]
  })
  return { rows: boxRows, mouse: frame.mouse }
}

function boxed(line: readonly Span[], wide: number): Span[] {
  return [{ text: `${glyph('side')} ` }, ...fitSpans(line, wide - 4), { text: ` ${glyph('side')}` }]
}

export function helpLines(title: string, keys: Keys): Span[][] {
  const wide = Math.max(...keys.map(([key]) => widthOf(key)))
  return [
    [{ text: title, style: { bold: true } }],
    [],
    ...keys.map(([key, does]): Span[] => [
      { text: fit(key, wide), style: { bold: true } },
      { text: `  ${does}` },
    ]),
  ]
}

export class Report {
  readonly #lines: readonly (readonly Span[])[]
  #top = 0
  #height = 1

  constructor(lines: readonly (readonly Span[])[]) {
    this.#lines = lines
  }

  key(name: string): boolean {
    const step = stepOf(name, this.#height)
    if (step === undefined) return false
    this.#top = Math.max(0, Math.min(this.#lines.length - this.#height, this.#top + step))
    return true
  }

  over(frame: Frame, size: Size): Frame {
    this.#height = Math.max(1, size.rows - reportMargin)
    this.#top = Math.max(0, Math.min(this.#top, this.#lines.length - this.#height))
    return overlay(frame, size, this.#lines.slice(this.#top, this.#top + this.#height))
  }
}

/** Findings of the doctor in lines of at most `columns`, with coloured severities. */
export function doctorLines(text: string, columns: number): Span[][] {
  const lines = sanitize(text)
    .split('\n')
    .flatMap((line) => partsOf(line, columns))
  return lines.map((line) => {
    const [word = ''] = /^(?:error|warning|ok)(?= )/.exec(line) ?? []
    if (word === '') return [{ text: line }]
    const fg = severityTones[word as keyof typeof severityTones]
    return [{ text: word, style: { fg, bold: true } }, { text: line.slice(word.length) }]
  })
}
