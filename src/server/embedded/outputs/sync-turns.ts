/** Waits for its turn; what it gives ends the turn. */
export type Turn = () => Promise<() => void>

/**
 * So many fsyncs at once, in the order in which they were asked for. Libuv has four threads for all files: with an
 * fsync in each, nothing could be read or written while the disk works.
 */
export function createSyncTurns(atOnce: number): Turn {
  const waiting: (() => void)[] = []
  let free = atOnce
  const end = () => {
    const next = waiting.shift()
    if (next) next()
    else free += 1
  }
  return async () => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    let isOver = false
    return () => {
      if (!isOver) end()
      isOver = true
    }
  }
}
