export const levels = ['DEBUG', 'INFO', 'WARN', 'ERROR'] as const
export type LogLevel = (typeof levels)[number]
export type Log = (level: LogLevel, message: string, fields?: Record<string, unknown>) => void

/** Drops what is below the level that `current` names at the time. */
export function leveled(log: Log, current: () => LogLevel): Log {
  return (level, message, fields) => {
    if (levels.indexOf(level) >= levels.indexOf(current())) log(level, message, fields)
  }
}

/** One JSON line on stderr each. */
export const stderrLog: Log = (level, message, fields = {}) => {
  process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), level, message, ...fields })}\n`)
}
