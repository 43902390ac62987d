const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** Milliseconds from one try to the next; after these, an hour each (contract §16). */
const pauses = [5 * second, 30 * second, 2 * minute, 10 * minute]
/** Milliseconds from its event after which a delivery is not tried any more. */
const triedFor = 24 * hour

/** Whether the time of a delivery is over. Times are milliseconds since 1970. */
export const isTimeOver = (eventAt: number, now: number): boolean => now - eventAt >= triedFor

/** When a delivery that has failed `tries` times is tried again; null: never. Times are milliseconds since 1970. */
export function nextTry(tries: number, eventAt: number, now: number): number | null {
  const at = now + (pauses[tries - 1] ?? hour)
  return isTimeOver(eventAt, at) ? null : at
}
