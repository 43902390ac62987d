import type { Clock } from '../../../../disk/clock.ts'

/** Milliseconds for which other servers may say nothing, as they say something each second. */
const toldFor = 4_000
/** The same where the table is read instead, which each writes and reads every five seconds. */
const readFor = 12_000

/** Whether this server learns what others hear. Times are monotonic milliseconds. */
export interface Deafness {
  isDeaf(): boolean
  /** For how long nothing was learnt since this was last asked. */
  time(): number
}

export function createDeafness(
  clock: Pick<Clock, 'monotonic'>,
  { heardTo, readTo }: { heardTo: () => number; readTo: () => number },
): Deafness {
  /** Deaf time up to here has been told. */
  let countedTo = Number.NEGATIVE_INFINITY
  const isDeaf = () => clock.monotonic() - heardTo() > toldFor
  return {
    isDeaf,
    time() {
      const now = clock.monotonic()
      const knownTo = Math.max(heardTo(), readTo())
      if (!isDeaf() || now - knownTo <= (readTo() > heardTo() ? readFor : toldFor)) return 0
      const from = Math.max(knownTo, countedTo)
      countedTo = now
      return now - from
    },
  }
}
