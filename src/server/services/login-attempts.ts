import { RsmError } from '../../core/errors.ts'
import { Mutex } from '../../core/mutex.ts'
import { sourceOf } from '../access/client-address.ts'
import type { ShortLived } from '../storage/ports/short-lived.ts'

/** Failed logins of one username from one source (address, or IPv6 /64) before the answer is 429. */
const failures = { most: 10, life: 5 * 60_000 }
/** Concurrent attempts of one source: a flood from one source leaves room for the others (S10). */
const sourceLimit = 16

/** Failure counter of one username from one source. */
export interface Throttle {
  /**
   * Counts the attempt as a failure up front; `forgive` takes that back. Otherwise, guesses sent at once, even to
   * several servers, would all pass before the first one fails. Rejects with `too_many` past the limit.
   */
  count(): Promise<void>
  /** Resets the counter after a correct password. */
  forgive(): Promise<void>
}

export class Attempts {
  readonly #mutexes = new Map<string, Mutex>()
  readonly #underWay = new Map<string, number>()
  readonly #shortLived: ShortLived

  constructor(shortLived: ShortLived) {
    this.#shortLived = shortLived
  }

  /** Serializes attempts per key, so that one user's concurrent logins do not count as failures. */
  async oneByOne<T>(
    username: string,
    address: string,
    attempt: (throttle: Throttle) => Promise<T>,
  ): Promise<T> {
    const source = sourceOf(address)
    const key = `${username.toLowerCase()}\n${source}`
    const ofSource = this.#underWay.get(source) ?? 0
    if (ofSource >= sourceLimit)
      throw new RsmError('too_many', 'Too many logins at once; try again in a moment', { retryAfter: 2 })
    this.#underWay.set(source, ofSource + 1)
    const mutex = this.#mutexes.get(key) ?? new Mutex()
    this.#mutexes.set(key, mutex)
    try {
      return await mutex.run(() => attempt(this.#throttle(key)))
    } finally {
      if (mutex.isFree) this.#mutexes.delete(key)
      const left = (this.#underWay.get(source) ?? 1) - 1
      if (left === 0) this.#underWay.delete(source)
      else this.#underWay.set(source, left)
    }
  }

  #throttle(key: string): Throttle {
    const shortLived = this.#shortLived
    return {
      async count() {
        const wait = await shortLived.count('login', key, failures)
        if (wait === 0) return
        const retryAfter = Math.ceil(wait / 1000)
        throw new RsmError('too_many', `Too many failed logins; try again in ${retryAfter} s`, { retryAfter })
      },
      forgive: () => shortLived.forget('login', key),
    }
  }
}
