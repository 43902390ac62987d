/** So many links are taken up in a turn of the loop: some milliseconds. */
const perTurn = 16

/** Takes up links one after the other, so that calls are answered while a whole fleet comes back. */
export interface Admission {
  /** `admit` is called when it is the turn of this link, in the order in which they came. */
  queue(admit: () => void): void
}

export function createAdmission(): Admission {
  /** Each holds an open socket, and of those there is a bound. */
  let waiting: (() => void)[] = []
  let next = 0
  function turn(): void {
    for (const admit of waiting.slice(next, next + perTurn)) admit()
    next += perTurn
    if (next < waiting.length) {
      setImmediate(turn)
      return
    }
    waiting = []
    next = 0
  }
  return {
    queue(admit) {
      waiting.push(admit)
      if (waiting.length === 1) setImmediate(turn)
    },
  }
}
