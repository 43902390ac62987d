import { sinceBoot } from '../../../disk/agreed-clock.ts'
import type { Clock } from '../../../disk/clock.ts'

/** Milliseconds; a clock jump of up to this counts as passed time, so that it makes slots due or delays them. */
const believed = 3600_000

/** Clock reading of a running server; times in milliseconds since 1970. */
export interface ClockReading {
  readonly now: number
  /** Slots up to here became due by a clock jump; null if only by the passing of time. */
  readonly jumpedTo: number | null
}

/**
 * Detects clock jumps while this process runs, by comparison with CLOCK_BOOTTIME, which cannot be set. Time between
 * two starts is not a jump: slots in it count as missed (contract §14).
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
    /** Whether the clock was set back and schedules are not rewound yet. */
    isBack: () => isBack,
    doneBack() {
      isBack = false
    },
  }
}
