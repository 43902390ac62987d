import type { Clock } from '../../../src/server/clock.ts'

/** A clock that a test sets forward; both its times go on from there. */
export class ShiftedClock implements Clock {
  #ahead = 0

  now(): number {
    return Date.now() + this.#ahead
  }

  monotonic(): number {
    return performance.now() + this.#ahead
  }

  forward(seconds: number): void {
    this.#ahead += seconds * 1000
  }
}
