export interface Pace {
  /** 2 is twice as fast as it was. */
  readonly speed: number
  /** A pause is no longer than so many seconds, before `speed`. */
  readonly idleLimit: number
}

/** Milliseconds to wait between events at `from` and `to`, both in seconds since the beginning. */
export function waitBetween(from: number, to: number, { speed, idleLimit }: Pace): number {
  return (Math.min(Math.max(0, to - from), idleLimit) / speed) * 1000
}
