/**
 * Calls `late` after so many milliseconds, once what has arrived until then is read: where this process has stood still, that may be
 * what was waited for. Answers how to wait no longer.
 */
export function afterReading(patience: number, late: () => void): () => void {
  let isWaited = true
  const timer = setTimeout(() => setImmediate(() => isWaited && late()), patience)
  return () => {
    isWaited = false
    clearTimeout(timer)
  }
}

/** Settles as `work` does, or rejects after `patience` milliseconds as `pg` does, whose own timeout overlooks unread answers. */
export const inTime = <T>(patience: number, work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const endWaiting = afterReading(patience, () => reject(new Error('Query read timeout')))
    void work.then(resolve, reject).finally(endWaiting)
  })
