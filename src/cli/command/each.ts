import { RsmError } from '../../core/errors.ts'
import { failureOf, reportFailure } from './failure.ts'

/** Errors that every other item would run into too. */
const ofAll = new Set(['unreachable', 'unauthenticated', 'forbidden', 'interrupted'])

interface Each<T, R> {
  readonly nameOf: (item: T) => string
  readonly json: boolean
  /** Called once at the end, even after an error, unless no item succeeded. */
  readonly done?: (items: readonly T[], results: readonly R[]) => void
}

/**
 * Applies `work` to each item in turn and returns the results of those that succeed. With several items, a failure is reported
 * under the item's name and the highest exit code wins. Errors: that of a single item, or one that affects every item.
 */
export async function doToEach<T, R>(
  items: readonly T[],
  { nameOf, json, done }: Each<T, R>,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  const changed: T[] = []
  try {
    for (const item of items) {
      try {
        results.push(await work(item))
        changed.push(item)
      } catch (error) {
        const isOwn = error instanceof RsmError && !ofAll.has(error.code)
        if (items.length === 1 || !isOwn) throw error
        const failure = failureOf(error)
        const name = nameOf(item)
        const message = failure.message.includes(name) ? failure.message : `${name}: ${failure.message}`
        const exit = reportFailure({ ...failure, message }, json)
        process.exitCode = Math.max(exit, Number(process.exitCode ?? 0))
      }
    }
  } finally {
    if (changed.length > 0) done?.(changed, results)
  }
  return results
}
