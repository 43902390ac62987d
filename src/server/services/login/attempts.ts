import { RsmError } from '../../../core/errors.ts'
import { Mutex } from '../../../core/mutex.ts'
import { sourceOf } from '../../access/client-address.ts'
import type { ShortLived } from '../../storage/ports/short-lived.ts'

/** Failures of one username from one address, or /64 of IPv6, before the answer is 429. */
const failures = { most: 10, life: 5 * 60_000 }
/** Attempts of one address or /64 under way: a flood from there leaves room for the others (S10). */
const sourceLimit = 16

/** What is counted of one username from one source. */
export interface Throttle {
  /**
   * Counts an attempt as a failure before it is made, until a right password takes that back: guesses sent at once, on several
   * servers too, must not all pass before the first has failed. `too_many` where there were too many.
   */
  count(): Promise<void>
  /** The password was right. */
  forgive(): Promise<void>
}

/** Attempts to guess a password. */
export class Attempts {
  /** By key, while an attempt is under way. */
  readonly #mutexes = new Map<string, Mutex>()
  readonly #underWay = new Map<string, number>()
  readonly #shortLived: ShortLived

  constructor(shortLived: ShortLived) {
    this.#shortLived = shortLived
  }

  /** Attempts of one key go one after the other: a user who logs in many times at once counts once at a time. */
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
