import { isUtf8 } from '../../text/screen.ts'
import { beginningOf, widthOf } from '../../text/width.ts'
import type { Frame, Key, Row, Segment, Size, Span, Style } from '../screen/screen.ts'

/** Columns below which only the active pane is shown. */
const narrowest = 50
const smallest: Size = { cols: 12, rows: 5 }
/** Rows above the panes (title, progress, pane titles) and below. */
const headRows = 3
const footRows = 1

/** Largest share of the screen for the left pane, because the log matters most. */
const largestLeft = 0.4

/** Columns below which no bar is drawn. */
const leastBar = 10

/** Characters of a prompt's text. */
const longestPrompt = 200

export type Focus = 'left' | 'right'
export type Keys = readonly (readonly [key: string, does: string])[]

/** Position of the panes; a width of 0 hides one. */
export interface Panes {
  readonly left: number
  readonly right: number
  readonly rightAt: number
  readonly top: number
  readonly height: number
}

export interface Parts {
  readonly title: Row
  readonly progress: Row
  readonly leftTitle: readonly Span[]
  readonly rightTitle: readonly Span[]
  /** Right-aligned in the right title. */
  readonly rightState: readonly Span[]
  readonly left: readonly (readonly Span[])[]
  readonly right: readonly (readonly Span[])[]
  readonly foot: Row
  readonly focus: Focus
  readonly prompt: Prompt | null
}

interface Share {
  readonly count: number
  readonly style: Style
}

/** Divides the screen; `wanted` is the preferred width of the left pane. */
export function panesOf({ cols, rows }: Size, wanted: number, focus: Focus): Panes {
  const at = { top: headRows, height: Math.max(1, rows - headRows - footRows) }
  if (cols < narrowest)
    return focus === 'left'
      ? { left: cols, right: 0, rightAt: cols, ...at }
      : { left: 0, right: cols, rightAt: 0, ...at }
  const left = Math.max(16, Math.min(wanted, Math.floor(cols * largestLeft)))
  return { left, right: cols - left - 1, rightAt: left + 1, ...at }
}

/** Assembles a frame: both panes side by side below the shared head. */
export function assemble(size: Size, panes: Panes, parts: Parts): Frame {
  const { cols, rows } = size
  if (cols < smallest.cols || rows < smallest.rows)
    return { rows: [rowOf(cols, { text: 'too small' })], mouse: false }
  const { left, right, rightAt, height } = panes
  const between = (name: Glyph): Segment[] =>
    left > 0 && right > 0 ? [{ at: left, spans: [{ text: glyph(name), style: { dim: true } }] }] : []
  const both = (a: Span[], line: Glyph, b: Span[]): Row => [
    ...(left > 0 ? [{ at: 0, spans: a }] : []),
    ...between(line),
    ...(right > 0 ? [{ at: rightAt, spans: b }] : []),
  ]
  const titles = both(
    titleOf(parts.leftTitle, [], left, parts.focus === 'left'),
    'join',
    titleOf(parts.rightTitle, parts.rightState, right, parts.focus === 'right'),
  )
  const body = Array.from({ length: height }, (_, at) =>
    both(fitSpans(parts.left[at] ?? [], left), 'side', fitSpans(parts.right[at] ?? [], right)),
  )
  const { prompt } = parts
  const typed = prompt === null ? '' : `${prompt.label}${prompt.text}`
  const foot = prompt === null ? parts.foot : rowOf(cols, { text: typed })
  const cursor = prompt === null ? undefined : { x: Math.min(cols - 1, widthOf(typed)), y: rows - 1 }
  return { rows: [parts.title, parts.progress, titles, ...body, foot], mouse: true, cursor }
}

function titleOf(spans: readonly Span[], state: readonly Span[], width: number, isFocused: boolean): Span[] {
  if (width <= 0) return []
  const style = isFocused ? { bold: true } : { dim: true }
  const room = Math.max(0, width - widthOfSpans(state))
  const rest = Math.max(0, room - widthOfSpans(spans))
  const line = { text: glyph('line').repeat(rest), style: { dim: true } }
  const front = fitSpans(
    [...spans.map((span) => ({ ...span, style: { ...style, ...span.style } })), line],
    room,
  )
  return fitSpans([...front, ...state], width)
}

/** Keys and their actions, as many as fit; replaced by `note`. */
export function footOf(cols: number, keys: Keys, note: Span | null): Row {
  if (note !== null) return rowOf(cols, { ...note, text: ` ${note.text}` })
  const spans: Span[] = []
  let wide = 0
  for (const [key, does] of keys) {
    const text = ` ${does}  `
    wide += widthOf(key) + widthOf(text)
    if (wide > cols) break
    spans.push({ text: key, style: { bold: true } }, { text, style: { dim: true } })
  }
  return spread(cols, spans, [])
}

/** Counts, after a bar if there is room. */
export function progressRow(cols: number, label: readonly Span[], parts: readonly Share[], all: number): Row {
  const room = cols - widthOfSpans(label) - 1
  return spread(cols, [{ text: ' ' }, ...(room < leastBar ? [] : progressBar(room, parts, all))], label)
}

/** Progress bar, with each part as wide as its share. */
function progressBar(width: number, parts: readonly Share[], all: number): Span[] {
  const spans: Span[] = []
  let done = 0
  let drawn = 0
  for (const { count, style } of parts) {
    done += count
    // At least one column per part, so that one failure in a thousand is visible.
    const upTo = Math.max(count > 0 ? drawn + 1 : drawn, Math.floor((done * width) / Math.max(1, all)))
    const wide = Math.min(width, upTo) - drawn
    if (wide > 0) spans.push({ text: glyph('bar').repeat(wide), style })
    drawn += wide
  }
  const rest = { text: glyph('rest').repeat(Math.max(0, width - drawn)), style: { dim: true } }
  return drawn < width ? [...spans, rest] : spans
}

export class Prompt {
  readonly label: string
  text: string

  constructor(label: string, text = '') {
    this.label = label
    this.text = text
  }

  /** `done` on Enter, `left` on Escape or a Backspace in an empty prompt. */
  key({ name, text }: Key): 'typed' | 'done' | 'left' {
    if (name === 'enter') return 'done'
    if (name === 'escape' || name === 'C-c') return 'left'
    if (name === 'backspace') {
      if (this.text === '') return 'left'
      this.text = this.text.replace(/.$/su, '')
    } else if (name === 'C-u') this.text = ''
    else if (name === 'C-w') this.text = this.text.trimEnd().replace(/(?<!\S)\S+$/, '')
    else if (text !== null && this.text.length < longestPrompt) this.text += text
    return 'typed'
  }
}

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
