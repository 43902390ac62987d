import { type FSWatcher, watch } from 'node:fs'
import type { Clock } from '../../clock.ts'
import type { Execution } from '../execution.ts'

/** Catches what fs.watch missed. */
const lookEvery = 1_000
/** Where the system has no inotify left for one of them. */
const lookEveryUnwatched = 100

/** Says when a running script has written: within a millisecond by inotify, at the latest within a second. */
export class SpoolWatch {
  readonly #clock: Clock
  readonly #changed: (execution: Execution) => void
  readonly #refused: (error: unknown) => void
  /** Null where the system refuses to watch. */
  readonly #watchers = new Map<Execution, FSWatcher | null>()
  #wasRefused = false
  #stopLooking: () => void = () => {}

  /** `refused` hears once why the system watches no more (EMFILE, ENOSPC). */
  constructor(clock: Clock, changed: (execution: Execution) => void, refused: (error: unknown) => void) {
    this.#clock = clock
    this.#changed = changed
    this.#refused = refused
  }

  /** Never throws: what can't be watched is looked at. */
  add(execution: Execution): void {
    this.#watchers.set(execution, this.#watch(execution))
    this.#look()
  }

  remove(execution: Execution): void {
    this.#watchers.get(execution)?.close()
    this.#watchers.delete(execution)
    if (this.#watchers.size === 0) this.#stopLooking()
  }

  stop(): void {
    for (const execution of this.#watchers.keys()) this.remove(execution)
  }

  #watch(execution: Execution): FSWatcher | null {
    try {
      const watcher = watch(execution.place, { persistent: false }, (_, name) => {
        if (name === 'stdout' || name === 'stderr') this.#changed(execution)
      })
      watcher.on('error', () => {
        watcher.close()
        if (this.#watchers.get(execution) !== watcher) return
        this.#watchers.set(execution, null)
        this.#look()
      })
      return watcher
    } catch (error) {
      if (!this.#wasRefused) this.#refused(error)
      this.#wasRefused = true
      return null
    }
  }

  #look(): void {
    this.#stopLooking()
    const isUnwatched = [...this.#watchers.values()].includes(null)
    this.#stopLooking = this.#clock.after(isUnwatched ? lookEveryUnwatched : lookEvery, () => {
      for (const execution of this.#watchers.keys()) this.#changed(execution)
      this.#look()
    })
  }
}
