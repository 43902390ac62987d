/** Wall time for people, monotonic time for decisions: clock steps must never end or lose anything (reliability F13). */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds that only ever go forward. */
  monotonic(): number
  /** Milliseconds since the boot of the machine, by CLOCK_BOOTTIME; the system's by default. */
  sinceBoot?(): number
}

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }

export function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}

export interface Repeated {
  /** Runs the work now; joins a run under way. */
  now(): Promise<void>
  /** Resolves once the run under way has ended. */
  stop(): Promise<void>
}

/** Runs `work` every `milliseconds`, never twice at once. The next run retries a failed one. */
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
