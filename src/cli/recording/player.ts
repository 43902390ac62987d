import { once } from 'node:events'
import type { RecordingEvent } from '../../client/services/recording.ts'
import { longestTimer } from '../../core/protocol/bounds.ts'
import { pause } from '../../net/backoff.ts'
import type { PlayerKey } from '../terminal/keyboard.ts'

export interface Pace {
  /** 2 is twice as fast as it was. */
  readonly speed: number
  /** A pause is no longer than so many seconds, before `speed`. */
  readonly idleLimit: number
}

interface PlayerOptions {
  readonly pace: Pace
  readonly show: (output: string) => Promise<void>
}

/** Shows a recording as it was, or as its keys say: paused, a step at a time, quit. */
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

  /** Resolves to false if it was quit before the end. */
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

  /** A pause interrupts it, and what was left of it comes after. */
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
        // A timer may fire a moment early; that is not worth another one.
        if (!signal.aborted && delay === left) return
        left -= performance.now() - began
      }
    }
  }
}

/** Milliseconds to wait between events at `from` and `to`, both in seconds since the beginning. */
export function waitBetween(from: number, to: number, { speed, idleLimit }: Pace): number {
  return (Math.min(Math.max(0, to - from), idleLimit) / speed) * 1000
}
