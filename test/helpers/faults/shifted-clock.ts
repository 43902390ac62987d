import { sinceBoot } from '../../../src/disk/agreed-clock.ts'
import type { Clock } from '../../../src/disk/clock.ts'

/** A clock that a test moves forward: time passes for everything that reads it. */
export class ShiftedClock implements Clock {
  #ahead = 0
  #set = 0

  now(): number {
    return Date.now() + this.#ahead + this.#set
  }

  monotonic(): number {
    return performance.now() + this.#ahead
  }

  sinceBoot(): number {
    return sinceBoot() + this.#ahead
  }

  forward(seconds: number): void {
    this.#ahead += seconds * 1000
  }

  /** Sets the wall clock, as a user does; no time passes. */
  set(seconds: number): void {
    this.#set += seconds * 1000
  }
}
