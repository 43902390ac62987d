import type { Clock } from '../../../disk/clock.ts'

/** Milliseconds over which the rate of a download is taken. */
const window = 10_000
/** Bytes a second that keep a slot for which others wait. */
const leastRate = 32 * 1024

interface Download {
  /** Bytes that it has taken by now. */
  readonly bytes: () => number
  /** Ends it, so that another gets its slot. */
  readonly cut: () => void
}

interface ActiveDownload extends Download {
  readonly key: string
  /** Where its rate is taken from, and where from next. */
  from: { at: number; bytes: number }
  last: { at: number; bytes: number }
}

interface SlotOptions {
  readonly max: number
  /** Of those with one key. */
  readonly maxPerKey: number
  readonly clock: Pick<Clock, 'monotonic'>
}

/** Slots for downloads. If none is free, a newcomer gets the slot of one that takes too little. */
export interface DownloadSlots {
  /** Answers how to free it again; null where all are taken by downloads that go on. */
  take(key: string, download: Download): (() => void) | null
}

export function createDownloadSlots({ max, maxPerKey, clock }: SlotOptions): DownloadSlots {
  const active = new Set<ActiveDownload>()
  let sampling: NodeJS.Timeout | undefined

  function sample(): void {
    const at = clock.monotonic()
    for (const one of active)
      if (at - one.last.at >= window) {
        one.from = one.last
        one.last = { at, bytes: one.bytes() }
      }
  }

  function rateOf({ from, bytes }: ActiveDownload): number {
    const passed = clock.monotonic() - from.at
    return passed < window ? Number.POSITIVE_INFINITY : ((bytes() - from.bytes) / passed) * 1000
  }

  /** Cuts the slowest, if it is too slow. */
  function makeRoom(among: readonly ActiveDownload[]): boolean {
    const [slowest] = [...among].sort((a, b) => rateOf(a) - rateOf(b))
    if (slowest === undefined || rateOf(slowest) >= leastRate) return false
    free(slowest)
    slowest.cut()
    return true
  }

  function free(one: ActiveDownload): void {
    active.delete(one)
    if (active.size > 0) return
    clearInterval(sampling)
    sampling = undefined
  }

  return {
    take(key, download) {
      const own = [...active].filter((one) => one.key === key)
      const crowd = own.length >= maxPerKey ? own : active.size >= max ? [...active] : null
      if (crowd !== null && !makeRoom(crowd)) return null
      const begun = { at: clock.monotonic(), bytes: 0 }
      const one: ActiveDownload = { ...download, key, from: begun, last: begun }
      active.add(one)
      sampling ??= setInterval(sample, window).unref()
      return () => free(one)
    },
  }
}
