import { isUtf8 } from './screen.ts'

export interface Reading {
  readonly at: number
  readonly value: number
}

export interface Scale {
  readonly from: number
  readonly to: number
  readonly top: number
}

const bars = '▁▂▃▄▅▆▇█'
const ascii = '_.:-=+*#'

/**
 * Readings as one character for each equal part of the time, from 0 to `top`: the highest of the part, so that no peak is
 * lost; a part without a reading is blank.
 */
export function sparkline(readings: readonly Reading[], scale: Scale, width: number): string {
  const { from, to, top } = scale
  const marks = isUtf8() ? bars : ascii
  const highest: (number | undefined)[] = Array.from({ length: width })
  const part = Math.max(1, to - from) / width
  for (const { at, value } of readings) {
    const place = Math.min(width - 1, Math.max(0, Math.floor((at - from) / part)))
    highest[place] = Math.max(highest[place] ?? 0, value)
  }
  const level = (value: number) =>
    Math.min(marks.length - 1, Math.floor((Math.min(value, top) / (top || 1)) * marks.length))
  return highest.map((value) => (value === undefined ? ' ' : (marks[level(value)] ?? ' '))).join('')
}
