import type { Age } from '../../../src/disk/agreed-clock.ts'

/** Ages by a clock that is never doubted. */
export function believed(now: () => number): { age(): Age } {
  return {
    age:
      () =>
      (from, to = from) =>
        now() - to,
  }
}
