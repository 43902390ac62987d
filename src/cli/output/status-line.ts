import { after } from '../../net/backoff.ts'
import type { BaseCommand } from '../command/base-command.ts'
import { transferParts } from '../files/shown.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { isUtf8, isWatched } from '../text/screen.ts'
import { beginningOf } from '../text/width.ts'
import { type Sink, sinkOf } from './format.ts'

/** Milliseconds between redraws. */
const interval = 100
/** Milliseconds after output before the line returns, because output comes in bursts. */
const settling = 20
/** Milliseconds before the line first appears; shorter tasks need none. */
const firstAfter = 300
/** Milliseconds between idle redraws, which update the elapsed time. */
const tick = 1000
/** Milliseconds that output waits for an answer; then the question scrolls away. */
const longestQuestion = 30_000

/** Milliseconds before a rate is meaningful. */
const firstRate = 1000

interface Screen {
  readonly columns?: number
  write(text: string): boolean
  on(event: 'resize', listener: () => void): unknown
  off(event: 'resize', listener: () => void): unknown
}

/** Time in milliseconds; `after` returns a function that cancels the work. */
export interface Clock {
  now(): number
  after(milliseconds: number, work: () => void): () => void
}

interface TransferProgress {
  /** `size` is null until the end if unknown. */
  readonly at: (bytes: number, size: number | null) => void
  readonly cut: (why: string) => void
  readonly end: () => void
}

const realClock: Clock = {
  now: () => performance.now(),
  after,
}

/**
 * A line with the progress of a task at the bottom of the terminal. Erased before other output; redrawn at a
 * limited rate, on an empty line only. The cursor stays at its start, so that erasing below removes all of it
 * even on a narrower terminal.
 */
export class StatusLine {
  readonly #screen: Screen
  readonly #text: () => string
  readonly #clock: Clock
  #isShown = false
  /** Whether the cursor is in an unterminated line. */
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
  /** Ctrl-Z: erase the line for the shell's prompt. */
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
    // A closed stdout ends the process at any point.
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

  /** Suspends drawing and output while a question is on the terminal, until `answered`. */
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

/** A progress line on the terminal; `what` is e.g. `sending app.conf`. */
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
