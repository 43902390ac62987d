import { RsmError } from '../../core/errors.ts'
import type { Limits } from '../../core/tasks/limits.ts'
import type { BatchSize, MaxFailures, Strategy } from '../../core/tasks/task.ts'
import { durationSeconds } from '../../core/text/duration.ts'
import { nearest } from '../../core/text/nearest.ts'

/** Repeated here, because loading the schemas takes a fifth of the startup time. */
const strategies: readonly Strategy[] = ['PARALLEL', 'SEQUENTIAL', 'ROLLING']

const secondsOfDay = 86_400

/** Seconds of `90`, `90s`, `5m` or `1h30m` (contract §9). */
export function parseDuration(text: string): number {
  const seconds = durationSeconds(text)
  if (seconds !== null) return seconds
  throw new RsmError('usage', `not a duration: ${text}`, { hint: 'write 90, 90s, 5m or 2h' })
}

const moment = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?(Z|[+-]\d\d:\d\d)?$/

/** Converts `2026-11-21 03:25`, the form that rsm prints, to ISO; without an offset it is local, or UTC with `utc`. */
export function parseTime(option: string, text: string, utc: boolean): string {
  const [, day = '', time = '00:00', zone = utc ? 'Z' : ''] = moment.exec(text) ?? []
  const date = new Date(`${day}T${time}${zone}`)
  if (Number.isNaN(date.getTime()))
    throw new RsmError('usage', `${option} takes a time, not ${text}`, {
      hint: `for example: ${option} '2026-11-21 03:25', ${option} 2026-11-21T02:25:00Z`,
    })
  return date.toISOString()
}

/** Whole seconds, because the server rejects fractions here. */
export function parseWholeSeconds(option: string, text: string): number {
  const seconds = parseDuration(text)
  if (!Number.isInteger(seconds)) throw new RsmError('usage', `${option} takes whole seconds, not ${text}`)
  return seconds
}

/** Longest delay of a timer in seconds; longer ones fire at once. */
const longestTimer = 24 * secondsOfDay

/** Seconds for a timer of this process. */
export function parseTimer(option: string, text: string): number {
  const seconds = parseDuration(text)
  if (seconds <= longestTimer) return seconds
  throw new RsmError('usage', `${option} takes at most 24d, not ${text}`)
}

/** Seconds of a lifetime like `12h`. Refuses a bare number, because users mean minutes, hours or days by it. */
export function parseLifetime(option: string, text: string): number {
  const isBare = /^\d+(\.\d+)?$/.test(text)
  const seconds = isBare ? null : durationSeconds(text)
  if (seconds !== null) return seconds
  const number = isBare ? text : '5'
  throw new RsmError('usage', `${option} takes a time with its unit, not ${text || 'nothing'}`, {
    hint: `write ${number}m, ${number}h or ${number}d`,
  })
}

/** Parses `KEY=VALUE` words; the value may be empty and may contain `=`. */
export function parsePairs(
  option: string,
  words: readonly string[],
  example = `${option} VERSION=1.2.3`,
): Record<string, string> {
  return Object.fromEntries(
    words.map((word) => {
      const at = word.indexOf('=')
      if (at < 1)
        throw new RsmError('usage', `${option} takes KEY=VALUE, not ${word}`, {
          hint: `for example: ${example}`,
        })
      return [word.slice(0, at), word.slice(at + 1)]
    }),
  )
}

function countOrPercent(option: string, text: string): number | string {
  if (/^\d{1,6}$/.test(text)) return Number(text)
  if (/^(100|\d{1,2})%$/.test(text)) return text
  throw new RsmError(
    'usage',
    `${option} takes a number or a percentage up to 100%, not ${text || 'nothing'}`,
    {
      hint: `for example: ${option} 2, ${option} 25%`,
    },
  )
}

/** Parses `5`, `25%`, or `1,10%,50%`, whose last step repeats (contract §4). */
export function parseBatchSize(text: string): BatchSize {
  const steps = text.split(',').map((word) => {
    const step = countOrPercent('--batch-size', word.trim())
    if (/[1-9]/.test(String(step))) return step
    throw new RsmError('usage', `--batch-size takes a number from 1 or a percentage from 1%, not ${step}`, {
      hint: 'for example: --batch-size 2, --batch-size 25%, or canaries: --batch-size 1,10%,50%',
    })
  })
  return steps.length === 1 && steps[0] !== undefined ? steps[0] : steps
}

const memoryUnits: Record<string, number> = { M: 1, G: 1024, T: 1024 ** 2 }
const limitExamples = '--limit memory=512M, --limit processes=100, --limit cpu=50%'

/** Parses `memory=512M` (or G, T), `processes=100` or `cpu=50%` (of one core). */
function parseLimit(name: string, size: string): Limits {
  const [, memory, unit = ''] = /^([1-9]\d{0,6})([MGT])(?:i?B)?$/i.exec(size) ?? []
  if (name === 'memory' && memory !== undefined)
    return { memoryMB: Number(memory) * (memoryUnits[unit.toUpperCase()] ?? 1) }
  if (name === 'processes' && /^[1-9]\d{0,6}$/.test(size)) return { processes: Number(size) }
  if (name === 'cpu' && /^[1-9]\d{0,5}%$/.test(size)) return { cpuPercent: Number(size.slice(0, -1)) }
  throw new RsmError('usage', `--limit does not take ${name}=${size}`, { hint: limitExamples })
}

export function parseLimits(words: readonly string[]): Limits {
  const pairs = Object.entries(parsePairs('--limit', words, limitExamples))
  return Object.assign({}, ...pairs.map(([name, size]) => parseLimit(name, size))) as Limits
}

export function parseMaxFailures(text: string): MaxFailures {
  return countOrPercent('--max-failures', text)
}

export function parseStrategy(text: string): Strategy {
  const found = strategies.find((strategy) => strategy === text.toUpperCase())
  if (found !== undefined) return found
  const names = strategies.map((strategy) => strategy.toLowerCase())
  const near = nearest(text, names)
  const meant = near === undefined ? '' : ` (did you mean ${near}?)`
  throw new RsmError('usage', `unknown strategy: ${text}${meant}`, { hint: `one of ${names.join(', ')}` })
}

const byteUnits: Record<string, number> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 }

/** Bytes of `500000` or `20G`; K, M, G and T are powers of 1024, as for `--limit`. */
export function parseBytes(option: string, text: string): number {
  const found = /^(\d{1,15})([KMGT]?)$/i.exec(text.trim())
  const bytes = Number(found?.[1]) * (byteUnits[found?.[2]?.toUpperCase() ?? ''] ?? Number.NaN)
  if (Number.isSafeInteger(bytes)) return bytes
  throw new RsmError('usage', `${option} takes a size, not ${text || 'nothing'}`, {
    hint: `for example: ${option} 20G`,
  })
}
