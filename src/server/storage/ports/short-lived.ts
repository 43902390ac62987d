/** What is short-lived; each kind has a bound of its own. */
export type ShortLivedKind = 'ticket' | 'login' | 'code' | 'registration' | 'reader'

/** How often something may happen under one key. */
export interface Rate {
  /** So many count at once. */
  most: number
  /** Milliseconds for which each counts. */
  life: number
  /** Whether each expires only `life` after the one before it: `most` at once, then one every `life`. */
  spaced?: boolean
}

/**
 * What all servers of a store share for seconds or minutes: values that are taken once, and counts of what happened lately.
 * It may be lost with a restart, and of more than 10,000 keys of a kind the oldest go.
 */
export interface ShortLived {
  /** Keeps a value, as JSON can hold it, for `life` milliseconds. */
  put(kind: ShortLivedKind, key: string, value: object, life: number): Promise<void>
  /** Takes the value: only the first caller gets it. Undefined if the key is unknown, taken or expired. */
  take(kind: ShortLivedKind, key: string): Promise<unknown>
  /**
   * Counts one more under a key and answers 0. If `most` count already, it counts nothing and answers the milliseconds until
   * there is room.
   */
  count(kind: ShortLivedKind, key: string, rate: Rate): Promise<number>
  /** The same without counting. */
  wait(kind: ShortLivedKind, key: string, rate: Rate): Promise<number>
  forget(kind: ShortLivedKind, key: string): Promise<void>
}
