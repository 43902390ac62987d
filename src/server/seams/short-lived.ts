/** What is short-lived; each kind has a bound of its own. */
export type ShortLivedKind = 'ticket' | 'login' | 'registration' | 'reader'

/** How often something may happen under one key. */
export interface Rate {
  /** So many count at once. */
  most: number
  /** Milliseconds for which each counts. */
  life: number
  /** Whether each begins to run down only when the one before it has: so many at once, then one every `life`. */
  inTurn?: boolean
}

/**
 * What all servers of a store share for seconds or minutes: values that are taken once, and counts of what happened lately.
 * It may be lost with a restart, and of more than 10,000 keys of a kind the oldest go.
 */
export interface ShortLived {
  /** Keeps a value, as JSON can hold it, for `life` milliseconds. */
  put(kind: ShortLivedKind, key: string, value: object, life: number): Promise<void>
  /** The value, for whoever comes first: it is gone then. Undefined where it is unknown, taken, or past its life. */
  take(kind: ShortLivedKind, key: string): Promise<unknown>
  /** Counts one more under a key: 0; where `most` count already it counts none, and answers the milliseconds until there is room. */
  count(kind: ShortLivedKind, key: string, rate: Rate): Promise<number>
  /** The same without counting. */
  wait(kind: ShortLivedKind, key: string, rate: Rate): Promise<number>
  forget(kind: ShortLivedKind, key: string): Promise<void>
}
