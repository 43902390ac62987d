import { LineEndings } from '../terminal/line-endings.ts'
import { sanitize, wholeSequences } from '../text/sanitize.ts'

/** A line that has no end is written in pieces of so many characters. */
const longestPiece = 64 * 1024

/** Output of a terminal as text for a file or a pipe: without control sequences (contract §9), in whole lines. */
export class PlainText {
  readonly #endings = new LineEndings()
  #pieces: string[] = []
  #length = 0

  write(chunk: string): string {
    // Lines that were drawn one over the other stand one below the other.
    const text = this.#endings.write(chunk).replaceAll('\r', '\n')
    const end = text.lastIndexOf('\n') + 1
    if (end > 0) {
      const lines = this.#take() + text.slice(0, end)
      this.#keep(text.slice(end))
      return sanitize(lines)
    }
    this.#keep(text)
    if (this.#length <= longestPiece) return ''
    const held = this.#take()
    const whole = wholeSequences(held)
    // A sequence as long as that is none that ends.
    if (held.length - whole.length <= longestPiece / 2) this.#keep(held.slice(whole.length))
    return sanitize(whole)
  }

  end(): string {
    return sanitize(this.#take() + this.#endings.end())
  }

  #keep(text: string): void {
    this.#pieces.push(text)
    this.#length += text.length
  }

  #take(): string {
    const text = this.#pieces.join('')
    this.#pieces = []
    this.#length = 0
    return text
  }
}
