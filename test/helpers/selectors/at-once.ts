import { resolveInSlices, type Sliced } from '../../../src/core/selector/resolve.ts'

/** The result of sliced work, run without pauses. */
export function atOnce<T>(work: Sliced<T>): T {
  let step = work.next()
  while (step.done !== true) step = work.next()
  return step.value
}

export const resolveNow = (...given: Parameters<typeof resolveInSlices>) => atOnce(resolveInSlices(...given))
