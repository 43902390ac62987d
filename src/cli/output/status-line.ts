import { after } from '../../net/backoff.ts'
import type { BaseCommand } from '../command/base-command.ts'
import { transferParts } from '../files/shown.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { isUtf8, isWatched } from '../text/screen.ts'
import { beginningOf } from '../text/width.ts'
import { type Sink, sinkOf } from './format.ts'

/** The least time between two drawings, in milliseconds. */
const interval = 100
/** Output usually comes in bursts: the line comes back after this pause. */
const settling = 20
/** A task that ends sooner needs no status line. */
const firstAfter = 300
/** How often it is redrawn while nothing happens: it shows how long it has taken. */
const tick = 1000
/** How long output waits for the answer to a question; then the question scrolls away. */
const longestQuestion = 30_000

/** Milliseconds before which a rate says little. */
const firstRate = 1000

interface Screen {
  readonly columns?: number
  write(text: string): boolean
  on(event: 'resize', listener: () => void): unknown
  off(event: 'resize', listener: () => void): unknown
}

/** Time in milliseconds; `after` answers what takes the work back. */
export interface Clock {
  now(): number
  after(milliseconds: number, work: () => void): () => void
}

/** A transfer as people see it. */
interface TransferProgress {
  /** `size` is null where only its end says it. */
  readonly at: (bytes: number, size: number | null) => void
  readonly cut: (why: string) => void
  readonly end: () => void
}

const realClock: Clock = {
  now: () => performance.now(),
  after,
}

/**
 * A line at the bottom of the terminal that says how far a task is. It is erased before anything else is written, and
 * drawn again at a bounded rate, on an empty line only. The cursor stays at its beginning, so that erasing what is below
 * takes all of it away, however the terminal broke it as it became narrower.
 */
export class StatusLine {
  readonly #screen: Screen
  readonly #text: () => string
  readonly #clock: Clock
  #isShown = false
  /** The cursor stands in a line that somebody has not finished. */
  #isInLine = false
  #drawnAt = Number.NEGATIVE_INFINITY
  #later: (() => void) | undefined
  #stopTicking = () => {}
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

  constructor(screen: Screen, text: () => string, clock: Clock = realClock) {
    this.#screen = screen
    this.#text = text
    this.#clock = clock
    this.#later = clock.after(firstAfter, () => this.#draw())
    this.#tick()
    screen.on('resize', this.#onResize)
    // A closed stdout ends the process wherever it stands.
    process.on('exit', this.#onExit)
    process.on('SIGTSTP', this.#onStop)
  }

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
    const takeBack = this.#clock.after(longestQuestion, () => this.answered())
    this.#question = new Promise((resolve) => {
      this.#answered = () => {
        takeBack()
        this.#question = undefined
        resolve()
      }
    })
  }

  answered(): void {
    this.#answered()
  }

  end(): void {
    this.#answered()
    this.#isOver = true
    this.#later?.()
    this.#stopTicking()
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

  #tick(): void {
    this.#stopTicking = this.#clock.after(tick, () => {
      this.#drawSoon()
      this.#tick()
    })
  }

  #drawSoon(): void {
    if (this.#isOver || this.#later !== undefined) return
    const wait = Math.max(settling, this.#drawnAt + interval - this.#clock.now())
    this.#later = this.#clock.after(wait, () => this.#draw())
  }

  #draw(): void {
    this.#later = undefined
    if (this.#isOver || this.#isInLine || this.#question !== undefined) return
    this.#erase()
    const line = beginningOf(this.#text().replace(/\s/g, ' '), (this.#screen.columns ?? 80) - 1)
    this.#drawnAt = this.#clock.now()
    if (line === '') return
    this.#isShown = true
    this.#screen.write(`${line}\r`)
  }
}

/** A line on the terminal; `what` is `sending app.conf`. */
export function showTransfer({ globals }: BaseCommand, what: string): TransferProgress {
  const began = performance.now()
  const shown = sanitizeLine(what)
  let bytes = 0
  let size: number | null = null
  const text = () => {
    const milliseconds = performance.now() - began
    const rate = milliseconds < firstRate ? null : (bytes / milliseconds) * 1000
    return `${shown}: ${transferParts(bytes, size, rate).join(isUtf8() ? ' · ' : ' | ')}`
  }
  const isDrawn = process.stderr.isTTY && isWatched() && !globals.quiet && !globals.json
  const line = isDrawn ? new StatusLine(process.stderr, text) : undefined
  const stderr = sinkOf(process.stderr, { dispensable: true })
  const guarded = line?.guard(stderr) ?? stderr
  return {
    at(now, of) {
      bytes = now
      size = of
    },
    cut(why) {
      if (!globals.quiet)
        void guarded.write(`rsm: ${sanitizeLine(why)}; ${shown} continues where it was cut\n`)
    },
    end: () => line?.end(),
  }
}
