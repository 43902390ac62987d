import { type FSWatcher, watch } from 'node:fs'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { Execution } from '../execution.ts'

/** Milliseconds; catches changes that fs.watch missed. */
const pollInterval = 1_000
/** Milliseconds, if inotify has no watch left for one of them. */
const unwatchedInterval = 100

/** Reports when a running script has written: within 1 ms by inotify, at the latest within a second. */
export class SpoolWatch {
  readonly #clock: Clock
  readonly #log: Log
  readonly #changed: (execution: Execution) => void
  /** Null if the system refuses to watch. */
  readonly #watchers = new Map<Execution, FSWatcher | null>()
  #wasRefused = false
  #cancelPoll: () => void = () => {}

  constructor(clock: Clock, log: Log, changed: (execution: Execution) => void) {
    this.#clock = clock
    this.#log = log
    this.#changed = changed
  }

  /** Never throws: spools that cannot be watched are polled. */
  add(execution: Execution): void {
    this.#watchers.set(execution, this.#watch(execution))
    this.#schedulePoll()
  }

  remove(execution: Execution): void {
    this.#watchers.get(execution)?.close()
    this.#watchers.delete(execution)
    if (this.#watchers.size === 0) this.#cancelPoll()
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
        this.#schedulePoll()
      })
      return watcher
    } catch (error) {
      // Logged once (EMFILE, ENOSPC).
      if (!this.#wasRefused) this.#log('WARN', 'cannot watch spools; polling', { error: String(error) })
      this.#wasRefused = true
      return null
    }
  }

  #schedulePoll(): void {
    this.#cancelPoll()
    const isUnwatched = [...this.#watchers.values()].includes(null)
    this.#cancelPoll = this.#clock.after(isUnwatched ? unwatchedInterval : pollInterval, () => {
      for (const execution of this.#watchers.keys()) this.#changed(execution)
      this.#schedulePoll()
    })
  }
}
