import { sanitize } from '../../text/sanitize.ts'
import { partsOf } from '../log/viewport.ts'
import type { Frame, Size, Span } from '../screen/screen.ts'
import { stepOf } from './list.ts'
import { overlay } from './overlay.ts'

/** What an overlay leaves free above and below, and its own edges. */
const margin = 4

/** A box of lines over a frame, as long as may be: keys that move scroll it. */
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
    this.#height = Math.max(1, size.rows - margin)
    this.#top = Math.max(0, Math.min(this.#top, this.#lines.length - this.#height))
    return overlay(frame, size, this.#lines.slice(this.#top, this.#top + this.#height))
  }
}

const tones = { error: 'red', warning: 'yellow', ok: 'green' } as const

/** What the doctor found, its severities as they are told elsewhere, in lines of so many columns. */
export function doctorLines(text: string, columns: number): Span[][] {
  const lines = sanitize(text)
    .split('\n')
    .flatMap((line) => partsOf(line, columns))
  return lines.map((line) => {
    const [word = ''] = /^(?:error|warning|ok)(?= )/.exec(line) ?? []
    if (word === '') return [{ text: line }]
    const fg = tones[word as keyof typeof tones]
    return [{ text: word, style: { fg, bold: true } }, { text: line.slice(word.length) }]
  })
}
