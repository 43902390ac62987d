const breaks = /[\t\n\v\f\r\u0085\u2028\u2029]+/g
/** Control characters, bidi marks, zero-width characters, unpaired surrogates. */
const unprintable = /[\p{Cc}\p{Cs}\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu

/** Makes foreign text safe to show on one line: unprintable characters become U+FFFD. */
export function printable(text: string): string {
  return text.replace(breaks, ' ').replace(unprintable, '\ufffd')
}

/** Level numbers of log lines, as in pino: server and agent write the same lines. */
export const levelNumbers = { DEBUG: 20, INFO: 30, WARN: 40, ERROR: 50 } as const

const levelNames = new Map<unknown, string>(
  Object.entries(levelNumbers).map(([name, number]) => [number, name]),
)
const levelColors: Readonly<Record<string, number>> = { DEBUG: 2, WARN: 33, ERROR: 31 }

/** `14:34:05 WARN  no link to the server  code=1006`, followed by the stack if there is one. */
export function logLineForPeople(json: string, isColored: boolean): string {
  const { level, time, msg, err, ...fields } = JSON.parse(json) as Record<string, unknown>
  const date = new Date(String(time))
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':')
  const name = levelNames.get(level) ?? 'FATAL'
  const color = isColored ? (levelColors[name] ?? 0) : 0
  const word = color === 0 ? name.padEnd(5) : `\u001b[${color}m${name.padEnd(5)}\u001b[0m`
  const fault = (typeof err === 'object' && err !== null ? err : {}) as { message?: unknown; stack?: unknown }
  if (fault.message !== undefined) fields['error'] = fault.message
  const more = Object.entries(fields).map(([field, value]) => `${printable(field)}=${formatValue(value)}`)
  const head = [`${clock} ${word} ${printable(typeof msg === 'string' ? msg : '')}`, ...more].join('  ')
  const frames = typeof fault.stack === 'string' ? fault.stack.split('\n').slice(1) : []
  return [head, ...frames.map((frame) => `    ${printable(frame.trim())}`)].join('\n')
}

/** Unchanged if it has no blanks or quotes; anything else as JSON. */
function formatValue(value: unknown): string {
  if (typeof value === 'string' && /^[^\s"'{}[\]=]+$/.test(value)) return printable(value)
  return printable(JSON.stringify(value) ?? '')
}

const two = (value: number) => String(value).padStart(2, '0')
