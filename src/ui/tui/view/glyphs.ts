import { isUtf8 } from '../../text/screen.ts'

const drawn = {
  failed: '✗',
  lost: '?',
  running: '▸',
  pending: '·',
  stopped: '-',
  success: '✓',
  warning: '!',
  bar: '█',
  rest: '░',
  line: '─',
  side: '│',
  join: '┬',
  topLeft: '┌',
  topRight: '┐',
  bottomLeft: '└',
  bottomRight: '┘',
}
const ascii: typeof drawn = {
  failed: 'x',
  lost: '?',
  running: '>',
  pending: '.',
  stopped: '-',
  success: '+',
  warning: '!',
  bar: '#',
  rest: '.',
  line: '-',
  side: '|',
  join: '+',
  topLeft: '+',
  topRight: '+',
  bottomLeft: '+',
  bottomRight: '+',
}

export type Glyph = keyof typeof drawn

/** Marks and lines; ASCII where the locale is not UTF-8 (contract §9). */
export function glyph(name: Glyph): string {
  return (isUtf8() ? drawn : ascii)[name]
}
