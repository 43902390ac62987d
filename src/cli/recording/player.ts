import { once } from 'node:events'
import type { RecordingEvent } from '../../client/services/recording.ts'
import { longestTimer } from '../../core/protocol/bounds.ts'
import { pause } from '../../net/backoff.ts'
import type { PlayerKey } from '../terminal/keyboard.ts'

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
