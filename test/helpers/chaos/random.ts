/** Pseudo-random numbers, the same for the same seed (mulberry32). */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 up to, but not including, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** An integer from `least` to `most`, both included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1))
  }

  pick<T>(from: readonly T[]): T {
    const picked = from[this.between(0, from.length - 1)]
    if (picked === undefined) throw new TypeError('nothing to pick from')
    return picked
  }

  /** `count` different items, in random order. */
  some<T>(from: readonly T[], count: number): T[] {
    const left = [...from]
    const chosen: T[] = []
    while (chosen.length < count && left.length > 0) {
      const at = this.between(0, left.length - 1)
      chosen.push(...left.splice(at, 1))
    }
    return chosen
  }
}
