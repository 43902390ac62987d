import { type Clock, systemClock } from '../../../disk/clock.ts'
import type { Database } from './connection/database.ts'

/** Clock of the store's time, advanced by the monotonic clock, so that steps of this machine's clock have no effect. */
export interface StoreClock extends Clock {
  /**
   * Corrects the clock by a time of the store (milliseconds since 1970) from an answer; `asked` and `heard`
   * are monotonic. Moves only as far as the answer proves it wrong, so that slow answers have no effect.
   */
  learn(storeTime: number, asked: number, heard: number): void
}

/** SQL: current time of the store in milliseconds. */
export const storeTime = '(extract(epoch from rsm.now()) * 1000)::float8'

/** Samples for the initial time; the fastest one decides. */
const firstSamples = 3

export async function createStoreClock(database: Database, system: Clock = systemClock): Promise<StoreClock> {
  /** Store time when the monotonic clock was 0. */
  let base: number | null = null

  const clock: StoreClock = {
    now: () => Math.floor((base ?? 0) + system.monotonic()),
    monotonic: () => system.monotonic(),
    ...(system.sinceBoot ? { sinceBoot: system.sinceBoot.bind(system) } : {}),
    learn(time, asked, heard) {
      const earliest = time - heard
      const latest = time - asked
      base = base === null ? (earliest + latest) / 2 : Math.min(Math.max(base, earliest), latest)
    },
  }
  for (let sample = 0; sample < firstSamples; sample++) {
    const asked = system.monotonic()
    const [row] = await database.ask<{ time: number }>('api', `select ${storeTime} as time`)
    if (row) clock.learn(row.time, asked, system.monotonic())
  }
  return clock
}
