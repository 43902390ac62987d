import { LineBudget } from '../core/line-budget.ts'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'

/** Tells of what is tried again and again until it works, without filling the log. */
export class ThrottledErrors {
  readonly #lines = new LineBudget()
  readonly #clock: Clock
  readonly #log: Log

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  tell(message: string, taskId: string, error: unknown): void {
    const leftOut = this.#lines.take(taskId, this.#clock.monotonic())
    const reason = error instanceof Error ? error.message : String(error)
    if (leftOut !== null) this.#log('ERROR', message, { taskId, reason, leftOut })
  }
}
