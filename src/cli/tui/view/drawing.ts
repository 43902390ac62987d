import { isUtf8 } from '../../text/screen.ts'
import { beginningOf, widthOf } from '../../text/width.ts'
import type { Row, Segment, Span } from '../screen/screen.ts'

/** Glyphs, with ASCII forms for locales without UTF-8 (contract §9). */
const glyphs = {
  failed: ['✗', 'x'],
  lost: ['?', '?'],
  running: ['▸', '>'],
  pending: ['·', '.'],
  stopped: ['-', '-'],
  success: ['✓', '+'],
  warning: ['!', '!'],
  bar: ['█', '#'],
  rest: ['░', '.'],
  line: ['─', '-'],
  side: ['│', '|'],
  join: ['┬', '+'],
  topLeft: ['┌', '+'],
  topRight: ['┐', '+'],
  bottomLeft: ['└', '+'],
  bottomRight: ['┘', '+'],
} as const

export type Glyph = keyof typeof glyphs

/** Cuts text with a mark, or pads it, to exactly this width. */
export function fit(text: string, width: number): string {
  if (width <= 0) return ''
  const wide = widthOf(text)
  if (wide <= width) return text + ' '.repeat(width - wide)
  const begun = beginningOf(text, width - 1)
  return begun + ' '.repeat(width - 1 - widthOf(begun)) + (isUtf8() ? '…' : '~')
}

export function fitRight(text: string, width: number): string {
  const wide = widthOf(text)
  return wide <= width ? ' '.repeat(width - wide) + text : fit(text, width)
}

export function widthOfSpans(spans: readonly Span[]): number {
  return spans.reduce((sum, { text }) => sum + widthOf(text), 0)
}

/** A chosen row as one span, because colours on it would be hard to read. */
export function chosenRow(spans: readonly Span[], width: number, isFocused: boolean): Span[] {
  const text = fit(spans.map((span) => span.text).join(''), width)
  return [{ text, style: isFocused ? { inverse: true, bold: true } : { inverse: true, dim: true } }]
}

/** Cuts or pads spans to this width. */
export function fitSpans(spans: readonly Span[], width: number): Span[] {
  const fitted: Span[] = []
  let left = width
  for (const span of spans) {
    if (left <= 0) return fitted
    const wide = widthOf(span.text)
    fitted.push(wide <= left ? span : { ...span, text: fit(span.text, left) })
    left -= wide
  }
  return left > 0 ? [...fitted, { text: ' '.repeat(left) }] : fitted
}

export function rowOf(width: number, ...spans: Span[]): Row {
  return [{ at: 0, spans: fitSpans(spans, width) }]
}

/** Puts `back` at the right edge; `front` gives way to it. */
export function spread(width: number, front: readonly Span[], back: readonly Span[]): Row {
  const wide = widthOfSpans(back)
  const at = Math.max(0, width - wide)
  const segments: Segment[] = [{ at: 0, spans: fitSpans(front, at) }]
  if (wide > 0 && width > 0) segments.push({ at, spans: fitSpans(back, width - at) })
  return segments
}

export function glyph(name: Glyph): string {
  return glyphs[name][isUtf8() ? 0 : 1]
}
