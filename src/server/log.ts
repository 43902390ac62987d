import pino, { type Logger } from 'pino'
import { logLineForPeople } from '../core/text/log-line.ts'

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
export type LogLevel = 'DEBUG' | 'INFO' | 'WARN' | 'ERROR'

const terminal = {
  write(line: string) {
    process.stderr.write(`${logLineForPeople(line, !process.env['NO_COLOR'])}\n`)
  },
}

/** JSON lines on stderr, as stdout belongs to the command; lines for people where that is a terminal. */
export function createLog(level: LogLevel): Log {
  return pino(
    { level: level.toLowerCase(), base: null, timestamp: pino.stdTimeFunctions.isoTime },
    process.stderr.isTTY ? terminal : pino.destination({ dest: 2, sync: true }),
  )
}
