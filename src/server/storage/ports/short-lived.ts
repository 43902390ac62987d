/** Kinds of short-lived values; each has its own bound. */
export type ShortLivedKind = 'ticket' | 'login' | 'code' | 'registration' | 'reader'

export interface Rate {
  /** Maximum count at a time. */
  most: number
  /** Milliseconds until a count expires. */
  life: number
  /** Whether each expires `life` after the one before it: a burst of `most`, then one every `life`. */
  spaced?: boolean
}

/**
 * State that all servers of a store share for seconds or minutes: one-time values and rate counters. A
 * restart may lose it, and beyond 10,000 keys of a kind the oldest are evicted.
 */
export interface ShortLived {
  /** Stores a JSON value for `life` milliseconds. */
  put(kind: ShortLivedKind, key: string, value: object, life: number): Promise<void>
  /** Takes the value: only the first caller gets it. Undefined if the key is unknown, taken or expired. */
  take(kind: ShortLivedKind, key: string): Promise<unknown>
  /** Counts one more under a key and returns 0; at the limit only returns the milliseconds to wait. */
  count(kind: ShortLivedKind, key: string, rate: Rate): Promise<number>
  /** Like `count`, without counting. */
  wait(kind: ShortLivedKind, key: string, rate: Rate): Promise<number>
  forget(kind: ShortLivedKind, key: string): Promise<void>
}
