import type { Logger } from 'pino'
import pino from 'pino'
import { RsmError } from '../core/errors.ts'
import type { LogLevel } from '../core/protocol/control.ts'
import { logLineForPeople } from '../core/text/printable.ts'

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

export interface LeveledLog extends Log {
  levelNow(): LogLevel
  setLevel(level: LogLevel): void
}

const terminal = {
  write(line: string) {
    process.stderr.write(`${logLineForPeople(line, !process.env['NO_COLOR'])}\n`)
  },
}

/** Pino's number of DEBUG; more severe levels are higher. */
const debug = 20

const loggedErrors = new WeakSet<Error>()

/** Marks an error whose cause is already logged: later lines with it as `err` are logged at DEBUG. */
export function markLogged<E extends Error>(error: E): E {
  loggedErrors.add(error)
  return error
}

/** Drops the stack of an outage, because it does not help an operator. */
const withoutStack = (err: Error): object =>
  err instanceof RsmError && err.code === 'unavailable' ? { type: err.name, message: err.message } : err

/** JSON lines on stderr, because stdout belongs to the command; readable lines on a terminal. */
export function createLog(level: LogLevel): LeveledLog {
  const log = pino(
    {
      level: level.toLowerCase(),
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: (err: unknown) => (err instanceof Error ? pino.stdSerializers.err(err) : err) },
      hooks: {
        logMethod(args, method, at) {
          const [fields, ...rest] = args
          const { err } = fields as { err?: Error }
          if (err === undefined || at <= debug) method.apply(this, args)
          else if (loggedErrors.has(err)) this.debug(...args)
          else method.apply(this, [{ ...(fields as object), err: withoutStack(err) }, ...rest])
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
