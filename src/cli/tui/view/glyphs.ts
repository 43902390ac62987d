import { isUtf8 } from '../../text/screen.ts'

/** Each drawn, and in ASCII for where the locale is not UTF-8 (contract §9). */
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

export function glyph(name: Glyph): string {
  return glyphs[name][isUtf8() ? 0 : 1]
}
