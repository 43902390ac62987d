import { type Clock, systemClock } from '../../../disk/clock.ts'
import type { Database } from './connection/database.ts'

/** Its `now` is the store's time, carried on by the monotonic clock: no step of this machine's wall clock is in it. */
export interface StoreClock extends Clock {
  /**
   * The store's time, milliseconds since 1970, came with an answer; `asked` and `heard` are monotonic. What is believed moves
   * only as far as that proves it wrong, so that slow answers disturb nothing.
   */
  learn(storeTime: number, asked: number, heard: number): void
}

/** The present time of the store in milliseconds, as a column of a statement. */
export const storeTime = '(extract(epoch from rsm.now()) * 1000)::float8'

/** Answers from which the first time is learnt: the fastest decides. */
const firstSamples = 3

export async function createStoreClock(database: Database, system: Clock = systemClock): Promise<StoreClock> {
  /** The store's time when the monotonic clock showed 0. */
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
