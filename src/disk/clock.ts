/** Wall time for people, monotonic time for decisions: clock steps must never end or lose anything (reliability F13). */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds that never go back. */
  monotonic(): number
  /** Milliseconds since boot by CLOCK_BOOTTIME; the system's by default. */
  sinceBoot?(): number
}

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }

export function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}

export interface Repeated {
  /** Runs the work now; joins a run in flight. */
  now(): Promise<void>
  stop(): Promise<void>
}

/** Runs `work` every `milliseconds`, never concurrently. The next run retries a failed one. */
export function repeat(
  milliseconds: number,
  work: () => Promise<unknown>,
  failed: (error: unknown) => void,
): Repeated {
  let running: Promise<void> | null = null
  function now(): Promise<void> {
    running ??= work()
      .then(() => undefined, failed)
      .finally(() => {
        running = null
      })
    return running
  }
  const timer = setInterval(() => void now(), milliseconds).unref()
  return {
    now,
    async stop() {
      clearInterval(timer)
      await running
    },
  }
}
