/**
 * Lets `atOnce` works run at a time, the others in the order in which they came. What waits when its signal is aborted is
 * dropped. Answers what rejects for that, and where `mostWaiting` wait already.
 */
export function createTurns(atOnce: number, mostWaiting: number) {
  let free = atOnce
  const waiting = new Set<() => void>()

  async function turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (free > 0) {
      free--
      return
    }
    if (waiting.size >= mostWaiting) throw new Error(`${mostWaiting} others wait for the same`)
    await new Promise<void>((resolve, reject) => {
      const begin = () => {
        signal.removeEventListener('abort', drop)
        resolve()
      }
      const drop = () => {
        waiting.delete(begin)
        reject(signal.reason)
      }
      waiting.add(begin)
      signal.addEventListener('abort', drop)
    })
  }

  return async <T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> => {
    await turn(signal)
    try {
      return await work()
    } finally {
      const [next] = waiting
      if (next) {
        waiting.delete(next)
        next()
      } else free++
    }
  }
}
