/** Times in milliseconds. */
interface Pace {
  readonly first: number
  readonly longest: number
  /** Largest random cut of a delay, as a fraction, so that a fleet does not reconnect in step; default 0. */
  readonly jitter?: number
  readonly random?: () => number
}

/** Delays of retries, in milliseconds: each is twice the previous one, up to the longest. */
export class Backoff {
  readonly #pace: Pace
  #failures = 0

  constructor(pace: Pace) {
    this.#pace = pace
  }

  next(): number {
    const { first, longest, jitter = 0, random = Math.random } = this.#pace
    const base = Math.min(longest, first * 2 ** Math.min(this.#failures, 10))
    this.#failures += 1
    return Math.round(base * (1 - jitter * random()))
  }

  reset(): void {
    this.#failures = 0
  }
}

/** Calls `run` once after `ms` milliseconds; the returned function cancels it. */
type After = (ms: number, run: () => void) => () => void

export const after: After = (ms, run) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

/** Resolves after `ms` milliseconds, or when `signal` aborts. */
export function pause(ms: number, signal?: AbortSignal, later = after): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const cancel = later(ms, done)
    if (signal?.aborted === true) done()
    else signal?.addEventListener('abort', done)
  })
}
