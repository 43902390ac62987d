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

/** JSON lines on stderr, as stdout belongs to the command; lines for people where that is a terminal. */
export function createLog(level: LogLevel): LeveledLog {
  const log = pino(
    { level: level.toLowerCase(), base: null, timestamp: pino.stdTimeFunctions.isoTime },
    process.stderr.isTTY ? terminal : pino.destination({ dest: 2, sync: true }),
  )
  return Object.assign(log, {
    levelNow: () => log.level.toUpperCase() as LogLevel,
    setLevel(level: LogLevel) {
      log.level = level.toLowerCase()
    },
  })
}
