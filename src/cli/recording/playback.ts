import { once } from 'node:events'
import type { RecordingEvent, RecordingHeader } from '../../client/services/recording.ts'
import { longestTimer } from '../../core/protocol/bounds.ts'
import { pause } from '../../net/backoff.ts'
import { onDeparture } from '../terminal/departure.ts'
import { LineEndings, TerminalModes } from '../terminal/display.ts'
import { Keyboard, type PlayerKey, playerKeysOf } from '../terminal/keyboard.ts'
import { localSize } from '../terminal/term.ts'
import { sanitize, wholeSequences } from '../text/sanitize.ts'

/** Characters after which an unterminated line is written in pieces. */
const longestPiece = 64 * 1024

interface Recording {
  readonly header: RecordingHeader
  readonly events: AsyncGenerator<RecordingEvent>
}

/** Restores the terminal afterwards, whatever modes the recording set. */
export async function playOnTerminal(
  { header, events }: Recording,
  pace: Pace,
  notice: (text: string) => void,
): Promise<void> {
  const { cols, rows } = localSize()
  const { width, height } = header
  if (cols < width || rows < height)
    notice(`recorded at ${width}x${height}, this terminal has only ${cols}x${rows}`)
  const modes = new TerminalModes()
  let isAtLineStart = true
  let isWhole = false
  const player = new Player({
    pace,
    show(output) {
      modes.see(output)
      if (output !== '') isAtLineStart = output.endsWith('\n')
      return write(output)
    },
  })
  const quit = () => player.press('quit')
  const keyboard = process.stdin.isTTY
    ? new Keyboard({
        typed: (text) => playerKeysOf(text).forEach((key) => player.press(key)),
        gone: quit,
        suspending: () => process.stdout.write(modes.undo()),
        resumed: () => process.stdout.write(modes.redo()),
      })
    : null
  const departure = onDeparture(quit)
  keyboard?.start()
  try {
    isWhole = await player.play(events)
  } finally {
    keyboard?.stop()
    departure.stop()
    await write(modes.undo())
  }
  if (!isAtLineStart) await write('\n')
  if (isWhole) notice('end of the recording')
  if (departure.exit !== undefined) process.exitCode = departure.exit
}

/** Prints all output without delays, for a file or pipe; control sequences only if `raw` (contract §9). */
export async function printAtOnce({ events }: Recording, raw: boolean): Promise<void> {
  const text = raw ? new LineEndings() : new PlainText()
  for await (const [, kind, data] of events) if (kind === 'o') await write(text.write(data))
  await write(text.end())
}

/** Terminal output as text for a file or pipe: without control sequences, in whole lines (contract §9). */
export class PlainText {
  readonly #endings = new LineEndings()
  #pieces: string[] = []
  #length = 0

  write(chunk: string): string {
    // Overwritten lines go below each other.
    const text = this.#endings.write(chunk).replaceAll('\r', '\n')
    const end = text.lastIndexOf('\n') + 1
    if (end > 0) {
      const lines = this.#take() + text.slice(0, end)
      this.#push(text.slice(end))
      return sanitize(lines)
    }
    this.#push(text)
    if (this.#length <= longestPiece) return ''
    const pending = this.#take()
    const whole = wholeSequences(pending)
    // A sequence this long is not a real one.
    if (pending.length - whole.length <= longestPiece / 2) this.#push(pending.slice(whole.length))
    return sanitize(whole)
  }

  end(): string {
    return sanitize(this.#take() + this.#endings.end())
  }

  #push(text: string): void {
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

const write = (text: string) =>
  new Promise<void>((resolve) => {
    if (text === '') resolve()
    else process.stdout.write(text, () => resolve())
  })

export interface Pace {
  /** 2 is twice the original speed. */
  readonly speed: number
  /** Longest pause in seconds, before `speed` is applied. */
  readonly idleLimit: number
}

interface PlayerOptions {
  readonly pace: Pace
  readonly show: (output: string) => Promise<void>
}

/** Plays a recording in original time; keys pause, step and quit. */
export class Player {
  readonly #options: PlayerOptions
  readonly #quit = new AbortController()
  #isPaused = false
  #steps = 0
  #wake = new AbortController()

  constructor(options: PlayerOptions) {
    this.#options = options
  }

  press(key: PlayerKey): void {
    if (key === 'quit') this.#quit.abort()
    else if (key === 'pause') this.#isPaused = !this.#isPaused
    else if (this.#isPaused) this.#steps++
    this.#wake.abort()
  }

  /** Resolves to false if quit before the end. */
  async play(events: AsyncIterable<RecordingEvent>): Promise<boolean> {
    const { pace, show } = this.#options
    let at = 0
    for await (const [time, kind, data] of events) {
      if (kind !== 'o') continue
      await this.#wait(waitBetween(at, time, pace))
      if (this.#quit.signal.aborted) return false
      at = time
      await show(data)
    }
    return !this.#quit.signal.aborted
  }

  /** Waits, excluding time spent paused. */
  async #wait(milliseconds: number): Promise<void> {
    let left = milliseconds
    while (!this.#quit.signal.aborted) {
      if (this.#steps > 0) {
        this.#steps--
        return
      }
      if (!this.#isPaused && left <= 0) return
      this.#wake = new AbortController()
      const { signal } = this.#wake
      const began = performance.now()
      if (this.#isPaused) await once(signal, 'abort')
      else {
        const delay = Math.min(left, longestTimer)
        await pause(delay, signal)
        // A timer may fire slightly early; ignore the difference.
        if (!signal.aborted && delay === left) return
        left -= performance.now() - began
      }
    }
  }
}

/** Milliseconds between events at `from` and `to`, both in seconds since the start. */
export function waitBetween(from: number, to: number, { speed, idleLimit }: Pace): number {
  return (Math.min(Math.max(0, to - from), idleLimit) / speed) * 1000
}
