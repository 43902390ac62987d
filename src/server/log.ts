import pino, { type Logger } from 'pino'

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
export type LogLevel = 'DEBUG' | 'INFO' | 'WARN' | 'ERROR'

/** JSON lines on stderr: stdout belongs to the command. */
export function createLog(level: LogLevel): Log {
  return pino(
    { level: level.toLowerCase(), base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: 2, sync: true }),
  )
}
