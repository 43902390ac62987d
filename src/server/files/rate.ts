import { setTimeout as delay } from 'node:timers/promises'

/** Milliseconds of bytes that may go ahead of the rate after a pause. */
const burst = 200

/** Bounds bytes a second, of all who share it together. */
export interface Rate {
  /** Milliseconds until bytes would be let through. */
  readonly backlog: number
  /** Resolves when these bytes may go. Where `signal` ends the wait they don't, and those behind them come sooner. */
  take(bytes: number, signal?: AbortSignal): Promise<void>
  /** The size of pieces that keep it even, at most `most`. */
  piece(most: number): number
}

export function createRate(bytesPerSecond: number, now: () => number): Rate {
  let free = 0
  return {
    get backlog() {
      return Math.max(0, free - now())
    },
    async take(bytes, signal) {
      const cost = (bytes / bytesPerSecond) * 1000
      free = Math.max(free, now() - burst) + cost
      const wait = free - now()
      if (wait <= 0) return
      try {
        await delay(wait, undefined, signal && { signal })
      } catch (error) {
        free -= cost
        throw error
      }
    },
    piece: (most) => Math.max(1024, Math.min(most, Math.floor(bytesPerSecond / 10))),
  }
}
