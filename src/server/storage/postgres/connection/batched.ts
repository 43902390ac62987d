/**
 * Group commit: items that arrive while a batch is in flight form the next one. `run` gets items in the order
 * of arrival and returns a value for each; if it rejects, so does each item. A batch weighs at most `most`,
 * unless its only item is heavier.
 */
export function batched<I, O>(
  run: (items: readonly I[]) => Promise<readonly O[]>,
  most = 1000,
  weigh: (item: I) => number = () => 1,
): (item: I) => Promise<O> {
  interface Waiting {
    item: I
    resolve: (value: O) => void
    reject: (error: unknown) => void
  }
  const waiting: Waiting[] = []
  let isRunning = false

  function takeBatch(): Waiting[] {
    let weight = 0
    let count = 0
    for (const { item } of waiting) {
      weight += weigh(item)
      if (count > 0 && weight > most) break
      count++
    }
    return waiting.splice(0, count)
  }

  async function runAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = takeBatch()
      try {
        const values = await run(batch.map(({ item }) => item))
        for (const [at, { resolve }] of batch.entries()) resolve(values[at] as O)
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    isRunning = false
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (isRunning) return
      isRunning = true
      // Include items that arrive in the same turn of the event loop.
      setImmediate(() => void runAll())
    })
}
