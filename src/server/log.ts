import pino, { type Logger } from 'pino'
import type { LogLevel } from '../core/protocol/control.ts'
import { logLineForPeople } from '../core/text/log-line.ts'

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

/** A log whose level can be changed while it is written. */
export interface LeveledLog extends Log {
  levelNow(): LogLevel
  setLevel(level: LogLevel): void
}

const terminal = {
  write(line: string) {
    process.stderr.write(`${logLineForPeople(line, !process.env['NO_COLOR'])}\n`)
  },
}

/** Pino's number of DEBUG; what matters more has a higher one. */
const debug = 20

const toldErrors = new WeakSet<Error>()

/** Notes of an error that a line of its own tells what is behind it: lines with it as `err` are at DEBUG from now on. */
export function told<E extends Error>(error: E): E {
  toldErrors.add(error)
  return error
}

/** JSON lines on stderr, as stdout belongs to the command; lines for people where that is a terminal. */
export function createLog(level: LogLevel): LeveledLog {
  const log = pino(
    {
      level: level.toLowerCase(),
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      hooks: {
        logMethod(args, method, at) {
          const { err } = args[0] as { err?: Error }
          if (err !== undefined && toldErrors.has(err) && at > debug) this.debug(...args)
          else method.apply(this, args)
        },
      },
    },
    process.stderr.isTTY ? terminal : pino.destination({ dest: 2, sync: true }),
  )
  return Object.assign(log, {
    levelNow: () => log.level.toUpperCase() as LogLevel,
    setLevel(level: LogLevel) {
      log.level = level.toLowerCase()
    },
  })
}
