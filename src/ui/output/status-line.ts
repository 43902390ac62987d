import { beginningOf } from '../text/width.ts'
import type { Sink } from './sink.ts'

/** The least time between two drawings, in milliseconds. */
const interval = 100
/** What has been written has mostly company: the line comes back after so long. */
const settling = 20
/** What is over sooner needs none. */
const firstAfter = 300
/** How often it is drawn anew while nothing happens: it shows how long it has taken. */
const tick = 1000
/** How long output waits for the answer to a question; then the question scrolls away. */
const longestQuestion = 30_000

interface Screen {
  readonly columns?: number
  write(text: string): boolean
  on(event: 'resize', listener: () => void): unknown
  off(event: 'resize', listener: () => void): unknown
}

/**
 * A line at the bottom of the terminal that says how far a task is. It is erased before anything else is written, and
 * drawn again at a bounded rate, on an empty line only. The cursor stays at its beginning, so that erasing what is below
 * takes all of it away, however the terminal broke it as it became narrower.
 */
export class StatusLine {
  readonly #screen: Screen
  readonly #text: () => string
  #isShown = false
  /** The cursor stands in a line that somebody has not finished. */
  #isInLine = false
  #drawnAt = Number.NEGATIVE_INFINITY
  #later: NodeJS.Timeout | undefined
  readonly #ticking: NodeJS.Timeout
  #question: Promise<void> | undefined
  #answered = () => {}
  #isOver = false

  readonly #onResize = () => {
    this.#erase()
    this.#drawSoon()
  }
  readonly #onExit = () => this.#erase()
  /** Ctrl-Z: the shell's prompt comes where the line stands. */
  readonly #onStop = () => {
    this.#erase()
    process.kill(process.pid, 'SIGSTOP')
  }

  constructor(screen: Screen, text: () => string) {
    this.#screen = screen
    this.#text = text
    this.#later = setTimeout(() => this.#draw(), firstAfter)
    this.#ticking = setInterval(() => this.#drawSoon(), tick)
    screen.on('resize', this.#onResize)
    // A closed stdout ends the process wherever it stands.
    process.on('exit', this.#onExit)
    process.on('SIGTSTP', this.#onStop)
  }

  /** The same sink, before whose writes the line goes away. */
  guard(sink: Sink): Sink {
    return {
      get isTTY() {
        return sink.isTTY
      },
      get columns() {
        return sink.columns
      },
      colors: sink.colors,
      write: (text) => this.#write(sink, text),
    }
  }

  /** Something is being asked on the terminal: nothing is drawn, and what is written waits for `answered`. */
  ask(): void {
    this.#erase()
    const bound = setTimeout(() => this.answered(), longestQuestion)
    this.#question = new Promise((resolve) => {
      this.#answered = () => {
        clearTimeout(bound)
        this.#question = undefined
        resolve()
      }
    })
  }

  answered(): void {
    this.#answered()
  }

  /** Takes it away for good. */
  end(): void {
    this.#answered()
    this.#isOver = true
    clearTimeout(this.#later)
    clearInterval(this.#ticking)
    this.#erase()
    this.#screen.off('resize', this.#onResize)
    process.off('exit', this.#onExit)
    process.off('SIGTSTP', this.#onStop)
  }

  #write(sink: Sink, text: string): Promise<void> | void {
    if (this.#question !== undefined) return this.#question.then(() => this.#write(sink, text))
    if (text === '' || sink.isTTY !== true) return sink.write(text)
    this.#erase()
    this.#isInLine = !text.endsWith('\n')
    const written = sink.write(text)
    this.#drawSoon()
    return written
  }

  #erase(): void {
    if (!this.#isShown) return
    this.#isShown = false
    this.#screen.write('\r\u001b[J')
  }

  #drawSoon(): void {
    if (this.#isOver || this.#later !== undefined) return
    const wait = Math.max(settling, this.#drawnAt + interval - performance.now())
    this.#later = setTimeout(() => this.#draw(), wait)
  }

  #draw(): void {
    this.#later = undefined
    if (this.#isOver || this.#isInLine || this.#question !== undefined) return
    this.#erase()
    const line = beginningOf(this.#text().replace(/\s/g, ' '), (this.#screen.columns ?? 80) - 1)
    this.#drawnAt = performance.now()
    if (line === '') return
    this.#isShown = true
    this.#screen.write(`${line}\r`)
  }
}
