import { sanitizeLine } from '../text/sanitize.ts'
import { LineEndings } from './line-endings.ts'
import { TerminalModes } from './modes.ts'
import { localSize } from './term.ts'

const escape = '\u001b'

export class Display {
  readonly #modes = new TerminalModes()
  /** Null if stdout is a terminal. */
  readonly #endings = process.stdout.isTTY ? null : new LineEndings()
  #isAtLineStart = true
  /** Whether the terminal is released, temporarily or permanently. */
  #isLeft = false

  get isFullScreen(): boolean {
    return process.stdout.isTTY && !this.#isLeft && this.#modes.isAlternate
  }

  /** `shown` is called once it is written. */
  output(data: string, shown: () => void): void {
    this.#modes.see(data)
    const text = this.#endings === null ? data : this.#endings.write(data)
    if (data !== '') this.#isAtLineStart = data.endsWith('\n')
    if (text === '') shown()
    else process.stdout.write(text, () => shown())
  }

  /** Shows a message of rsm. On a full screen it replaces the last line until the next redraw. */
  say(message: string): void {
    const line = `rsm: ${sanitizeLine(message)}`
    if (!process.stderr.isTTY) {
      process.stderr.write(`${line}\n`)
      return
    }
    if (this.isFullScreen) {
      const { cols, rows } = localSize()
      const last = `${escape}[${rows};1H${escape}[0;7m${line.slice(0, cols)}${escape}[0m${escape}[K`
      process.stderr.write(`${escape}7${last}${escape}8`)
      return
    }
    process.stderr.write(`${this.#isAtLineStart ? '' : '\r\n'}${line}\r\n`)
    this.#isAtLineStart = true
  }

  /** Restores the terminal for a shell; `enter` restores the session's state. */
  leave(): void {
    if (this.#isLeft) return
    this.#isLeft = true
    this.#toTerminal(this.#modes.undo())
  }

  enter(): void {
    if (!this.#isLeft) return
    this.#isLeft = false
    this.#toTerminal(this.#modes.redo())
  }

  end(): void {
    const rest = this.#endings?.end() ?? ''
    if (rest !== '') process.stdout.write(rest)
  }

  #toTerminal(text: string): void {
    if (text !== '' && process.stdout.isTTY) process.stdout.write(text)
  }
}
