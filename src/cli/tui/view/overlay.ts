import { widthOf } from '../../text/width.ts'
import type { Frame, Row, Segment, Size, Span } from '../screen/screen.ts'
import { fit, fitSpans, widthOfSpans } from './fit.ts'
import { type Glyph, glyph } from './glyphs.ts'
import type { Keys } from './layout.ts'

/** A box of lines over the middle of a frame. */
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
