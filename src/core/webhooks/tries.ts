const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** Milliseconds from one try to the next; after these, an hour each (contract §16). */
const pauses = [5 * second, 30 * second, 2 * minute, 10 * minute]
/** Milliseconds from its event after which a delivery is not tried any more. */
const triedFor = 24 * hour

/** No clock that went on as it should has put a try off for so long, in milliseconds. */
const putOffFor = hour + minute

/** Whether the time of a delivery is over, whose event is `age` milliseconds old. */
export const isTimeOver = (age: number): boolean => age >= triedFor

/** Milliseconds until a delivery is tried again that has failed `tries` times and whose event is `age` old; null: never. */
export function nextTry(tries: number, age: number): number | null {
  const pause = pauses[tries - 1] ?? hour
  return isTimeOver(age + pause) ? null : pause
}

/** Whether a try is due: also where the clock was ahead when it was put off. Times are milliseconds since 1970. */
export const isDue = (nextAt: number, now: number): boolean => nextAt <= now || nextAt - now > putOffFor
