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
