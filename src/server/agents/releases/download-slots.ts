import type { Clock } from '../../../disk/clock.ts'

/** Milliseconds over which the rate of a download is measured. */
const window = 10_000
/** Minimum rate, in bytes a second, to keep a slot that another download waits for. */
const leastRate = 32 * 1024

interface Download {
  readonly bytes: () => number
  /** Aborts it to free its slot. */
  readonly cut: () => void
}

interface ActiveDownload extends Download {
  readonly key: string
  /** Start of the current measurement, and of the next. */
  from: { at: number; bytes: number }
  last: { at: number; bytes: number }
}

interface SlotOptions {
  readonly max: number
  readonly maxPerKey: number
  readonly clock: Pick<Clock, 'monotonic'>
}

/** Slots for downloads. If none is free, a new download replaces one that is too slow. */
export interface DownloadSlots {
  /** Returns a function that frees the slot; null if all slots are taken by downloads that are fast enough. */
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
