import { sinceBoot } from '../../../disk/agreed-clock.ts'
import type { Clock } from '../../../disk/clock.ts'

/** Milliseconds by which a clock is set that makes slots due, or puts them off, as if the time had passed. */
const believed = 3600_000

/** A look at the clock of a running server; times in milliseconds since 1970. */
export interface ClockReading {
  readonly now: number
  /** Slots up to here were reached by a jump; null: by the passing of time. */
  readonly jumpedTo: number | null
}

/**
 * Follows how far a clock is set while this process runs: by CLOCK_BOOTTIME, which nobody sets. What passes between two
 * starts is no jump: what was missed then is judged as missed (contract §14).
 */
export function followJumps(clock: Clock) {
  const up = () => clock.sinceBoot?.() ?? sinceBoot()
  let ahead = clock.now() - up()
  let jumpedTo: number | null = null
  let isBack = false
  return {
    read(): ClockReading {
      const now = clock.now()
      const by = now - up() - ahead
      ahead += by
      if (Math.abs(by) > believed) {
        jumpedTo = by > 0 ? now : null
        isBack = by < 0
      }
      return { now, jumpedTo }
    },
    /** It was set back, and what follows on that is not done. */
    isBack: () => isBack,
    doneBack() {
      isBack = false
    },
  }
}
