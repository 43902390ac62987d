import type { Age } from '../../disk/agreed-clock.ts'
import type { ScriptRecord } from './records/script.ts'

/** Former versions of scripts, apart from the store, which holds the present ones. */
export interface ScriptVersions {
  /**
   * Durable when it resolves. A version that was kept already is written again, with the same content; of more than
   * `mostVersions` the oldest goes. Errors: `unavailable` when the disk is full.
   */
  keep(script: ScriptRecord): Promise<void>
  /** Numbers of the versions kept, ascending: at most `mostVersions`. */
  list(id: number): Promise<number[]>
  read(id: number, version: number): Promise<ScriptRecord | null>
  forget(id: number): Promise<void>
  /**
   * Moves aside what is left of scripts that do not exist (a crash, or a change made beside a removal, leaves their
   * versions behind), and removes it so many days later; 0 = never. Answers the folder, where there was any.
   */
  sweep(exists: (id: number) => Promise<boolean>, days: number, age: Age, now: number): Promise<string | null>
}

/** Former versions kept of one script: almost three years of a script that is changed daily. */
export const mostVersions = 1000
