import { type FSWatcher, watch } from 'node:fs'
import type { Clock } from './clock.ts'
import type { Execution } from './execution.ts'

/** Catches what fs.watch missed. */
const lookEvery = 1_000

/** Says when a running script has written: within a millisecond by inotify, at the latest within a second. */
export class SpoolWatch {
  readonly #clock: Clock
  readonly #changed: (execution: Execution) => void
  readonly #watchers = new Map<Execution, FSWatcher>()
  #stopLooking: () => void = () => {}

  constructor(clock: Clock, changed: (execution: Execution) => void) {
    this.#clock = clock
    this.#changed = changed
  }

  add(execution: Execution): void {
    const watcher = watch(execution.directory, { persistent: false }, (_, name) => {
      if (name === 'stdout' || name === 'stderr') this.#changed(execution)
    })
    watcher.on('error', () => watcher.close())
    if (this.#watchers.size === 0) this.#look()
    this.#watchers.set(execution, watcher)
  }

  remove(execution: Execution): void {
    this.#watchers.get(execution)?.close()
    this.#watchers.delete(execution)
    if (this.#watchers.size === 0) this.#stopLooking()
  }

  stop(): void {
    for (const execution of this.#watchers.keys()) this.remove(execution)
  }

  #look(): void {
    this.#stopLooking = this.#clock.after(lookEvery, () => {
      for (const execution of this.#watchers.keys()) this.#changed(execution)
      this.#look()
    })
  }
}
