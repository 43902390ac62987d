import { RsmError } from '../../core/errors.ts'
import { failureOf, reportFailure } from './failure.ts'

/** What nobody further on would be spared. */
const ofAll = new Set(['unreachable', 'unauthenticated', 'forbidden', 'interrupted'])

/**
 * Does the same to each, one after the other. Of several a failure is told with its name and the others go on; the exit
 * code becomes the worst. Answers what the others came to. Errors: that of the only one, or one that all would have.
 */
export async function doToEach<T, R>(
  items: readonly T[],
  options: { readonly nameOf: (item: T) => string; readonly json: boolean },
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const done: R[] = []
  for (const item of items) {
    try {
      done.push(await work(item))
    } catch (error) {
      const isOwn = error instanceof RsmError && !ofAll.has(error.code)
      if (items.length === 1 || !isOwn) throw error
      const failure = failureOf(error)
      const name = options.nameOf(item)
      const message = failure.message.includes(name) ? failure.message : `${name}: ${failure.message}`
      const exit = reportFailure({ ...failure, message }, options.json)
      process.exitCode = Math.max(exit, Number(process.exitCode ?? 0))
    }
  }
  return done
}
