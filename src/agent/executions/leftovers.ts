import { rm } from 'node:fs/promises'
import { faultPoint } from '#fault-point'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { HeldOutput } from './held-output.ts'

/**
 * Directories of acknowledged executions are removed some time later, together: ext4 gives no inode away again within
 * seconds of its deletion and searches past each of those, so that deleting at once makes the next start slower.
 */
const removeAfter = 30_000
/** More output than this goes at once: a disk must not fill up for the sake of speed. */
const keepAtMost = 1024 * 1024
/** So many wait at most. */
const mostWaiting = 1000

export class Leftovers {
  readonly #clock: Clock
  readonly #log: Log
  readonly #held: HeldOutput
  #waiting: string[] = []
  #cancelTimer: (() => void) | undefined

  constructor(clock: Clock, log: Log, held: HeldOutput) {
    this.#clock = clock
    this.#log = log
    this.#held = held
  }

  /** `bytes` of output lie in the directory. What is left when the agent ends, the next one removes at its start. */
  add(directory: string, bytes: number): void {
    if (bytes > keepAtMost || this.#waiting.length >= mostWaiting) return this.remove(directory)
    this.#waiting.push(directory)
    this.#cancelTimer ??= this.#clock.after(removeAfter, () => {
      this.#cancelTimer = undefined
      for (const waiting of this.#waiting.splice(0)) this.remove(waiting)
    })
  }

  stop(): void {
    this.#cancelTimer?.()
  }

  /** Removes the directory as soon as no process holds output in it. */
  remove(directory: string): void {
    this.#held.whenReleased(directory, () => {
      faultPoint('agent.removed.before')
      rm(directory, { recursive: true, force: true }).then(
        () => faultPoint('agent.removed.after'),
        (error: unknown) =>
          this.#log('WARN', 'could not remove a spool', { directory, error: String(error) }),
      )
    })
  }
}
