import { BoundedMap } from '../../../core/bounded-map.ts'
import type { Clock } from '../../../disk/clock.ts'
import type { Rate, ShortLived, ShortLivedKind } from '../ports/short-lived.ts'

interface Kept {
  value?: object
  /** Monotonic milliseconds, ascending: when the value or each count expires. */
  ends: number[]
}

/** Limit of keys of one kind, because guesses create keys. */
const maxKeys = 10_000

/** In memory, because none of it has to survive a restart. */
export function createShortLived(clock: Pick<Clock, 'monotonic'>): ShortLived {
  const kinds = new Map<ShortLivedKind, BoundedMap<string, Kept>>()

  function keysOf(kind: ShortLivedKind): BoundedMap<string, Kept> {
    const found = kinds.get(kind) ?? new BoundedMap<string, Kept>(maxKeys)
    kinds.set(kind, found)
    return found
  }

  function insert(kind: ShortLivedKind, key: string, kept: Kept): void {
    const keys = keysOf(kind)
    keys.set(key, kept)
    const now = clock.monotonic()
    for (const [oldest, { ends }] of keys)
      if ((ends.at(-1) ?? 0) <= now) keys.delete(oldest)
      else break
  }

  /** Expiry times of the counts that are still valid. */
  function endsOf(kind: ShortLivedKind, key: string): number[] {
    const now = clock.monotonic()
    return (
      keysOf(kind)
        .get(key)
        ?.ends.filter((end) => end > now) ?? []
    )
  }

  function waitOf(ends: readonly number[], { most }: Rate): number {
    const next = ends.at(-most)
    return next === undefined ? 0 : next - clock.monotonic()
  }

  return {
    async put(kind, key, value, life) {
      insert(kind, key, { value, ends: [clock.monotonic() + life] })
    },
    async take(kind, key) {
      const isKept = endsOf(kind, key).length > 0
      const value = isKept ? keysOf(kind).get(key)?.value : undefined
      keysOf(kind).delete(key)
      return value
    },
    async count(kind, key, rate) {
      const ends = endsOf(kind, key)
      const wait = waitOf(ends, rate)
      if (wait > 0) return wait
      const from = rate.spaced === true ? ends.at(-1) : undefined
      insert(kind, key, { ends: [...ends, (from ?? clock.monotonic()) + rate.life] })
      return 0
    },
    wait: async (kind, key, rate) => waitOf(endsOf(kind, key), rate),
    async forget(kind, key) {
      keysOf(kind).delete(key)
    },
  }
}
