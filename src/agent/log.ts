import { LineBudget } from '../core/rates.ts'
import { levelNumbers, logLineForPeople } from '../core/text/printable.ts'
import type { Clock } from './clock.ts'

export const levels = ['DEBUG', 'INFO', 'WARN', 'ERROR'] as const
export type LogLevel = (typeof levels)[number]
export type Log = (level: LogLevel, message: string, fields?: Record<string, unknown>) => void

/** Drops lines below the level that `current` returns. */
export function leveled(log: Log, current: () => LogLevel): Log {
  return (level, message, fields) => {
    if (levels.indexOf(level) >= levels.indexOf(current())) log(level, message, fields)
  }
}

/**
 * One line on stderr each: JSON like the server's, without pino, which would cost every agent 9 MB; plain
 * text on a terminal.
 */
export const stderrLog: Log = (level, message, fields = {}) => {
  const line = { level: levelNumbers[level], time: new Date().toISOString(), ...fields, msg: message }
  const { isTTY } = process.stderr
  const text = JSON.stringify(line)
  process.stderr.write(`${isTTY ? logLineForPeople(text, !process.env['NO_COLOR']) : text}\n`)
}

/** Logs errors of retried work without filling the log. */
export class ThrottledErrors {
  readonly #lines = new LineBudget()
  readonly #clock: Clock
  readonly #log: Log

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /** Runs `act`; false if it threw. */
  attempt(message: string, taskId: string, act: () => void): boolean {
    try {
      act()
      return true
    } catch (error) {
      this.report(message, taskId, error)
      return false
    }
  }

  report(message: string, taskId: string, error: unknown): void {
    const leftOut = this.#lines.take(taskId, this.#clock.monotonic())
    const reason = error instanceof Error ? error.message : String(error)
    if (leftOut !== null) this.#log('ERROR', message, { taskId, reason, leftOut })
  }
}
