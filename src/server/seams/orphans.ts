import type { Age } from '../../disk/agreed-clock.ts'

/** Files or folders that no record of the store knows: it may be the store that is the wrong one, so none is deleted at once. */
export interface Orphans {
  /** Moves those of this sweep to a folder named by its time; answers which folder that is. */
  moveAside(names: readonly string[], now: number): Promise<string>
  /** Removes what was moved aside at least so many days ago; 0 = never. */
  sweep(days: number, age: Age): Promise<void>
}
