import { sanitizeLine } from '../text/sanitize.ts'
import { LineEndings } from './line-endings.ts'
import { TerminalModes } from './modes.ts'
import { localSize } from './term.ts'

const escape = '\u001b'

/** Where a session is shown: its output untouched, and what rsm says beside it. */
export class Display {
  readonly #modes = new TerminalModes()
  /** Null where a terminal shows it. */
  readonly #endings = process.stdout.isTTY ? null : new LineEndings()
  #isAtLineStart = true
  /** Whether the terminal is given back for now, or for good. */
  #isLeft = false

  get isFullScreen(): boolean {
    return process.stdout.isTTY && !this.#isLeft && this.#modes.isAlternate
  }

  /** `shown` is called once it was written. */
  output(data: string, shown: () => void): void {
    this.#modes.see(data)
    const text = this.#endings === null ? data : this.#endings.write(data)
    if (data !== '') this.#isAtLineStart = data.endsWith('\n')
    if (text === '') shown()
    else process.stdout.write(text, () => shown())
  }

  /** A line of rsm's own. A full screen keeps all but its last line, until it is drawn again. */
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

  /** Gives the terminal back as a shell expects it; `enter` takes it again as the session had it. */
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
