import { RsmError } from '../core/errors.ts'
import type { BatchSize, MaxFailures, Strategy } from '../core/protocol/http/tasks.ts'

/** Named here once more: the schemas that name them first cost a fifth of a start. */
const strategies: readonly Strategy[] = ['PARALLEL', 'SEQUENTIAL', 'ROLLING']

const secondsOfDay = 86_400
const units: Record<string, number> = { '': 1, s: 1, m: 60, h: 3600, d: secondsOfDay }

/** Seconds of `90`, `90s`, `5m`, `1h30m` (contract §9). */
export function parseDuration(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text)
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)([smhd])/g)]
  if (parts.length === 0 || parts.map((part) => part[0]).join('') !== text)
    throw new RsmError('usage', `not a duration: ${text}`, { hint: 'write 90, 90s, 5m or 2h' })
  return parts.reduce((sum, part) => sum + Number(part[1]) * (units[part[2] ?? ''] ?? 1), 0)
}

const moment = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?(Z|[+-]\d\d:\d\d)?$/

/** The time in UTC of `2026-11-21 03:25`, as this program shows times; without an offset it is local, or UTC with `utc`. */
export function parseTime(option: string, text: string, utc: boolean): string {
  const [, day = '', time = '00:00', zone = utc ? 'Z' : ''] = moment.exec(text) ?? []
  const date = new Date(`${day}T${time}${zone}`)
  if (Number.isNaN(date.getTime()))
    throw new RsmError('usage', `${option} takes a time, not ${text}`, {
      hint: `for example: ${option} '2026-11-21 03:25', ${option} 2026-11-21T02:25:00Z`,
    })
  return date.toISOString()
}

/** For `option`, whose server side takes no fractions. */
export function parseWholeSeconds(option: string, text: string): number {
  const seconds = parseDuration(text)
  if (!Number.isInteger(seconds)) throw new RsmError('usage', `${option} takes whole seconds, not ${text}`)
  return seconds
}

/** Days of `90`, `90d`, `12h`: where lives are counted in days, a bare number is days and not seconds. */
export function parseDays(text: string): number {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : parseDuration(text) / secondsOfDay
}

/** `KEY=VALUE` words as an object; the value may be empty and may hold `=`. */
export function parsePairs(option: string, words: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    words.map((word) => {
      const at = word.indexOf('=')
      if (at < 1)
        throw new RsmError('usage', `${option} takes KEY=VALUE, not ${word}`, {
          hint: `for example: ${option} VERSION=1.2.3`,
        })
      return [word.slice(0, at), word.slice(at + 1)]
    }),
  )
}

function countOrPercent(option: string, text: string): number | string {
  if (/^\d{1,6}$/.test(text)) return Number(text)
  if (/^\d{1,3}%$/.test(text)) return text
  throw new RsmError('usage', `${option} takes a number or a percentage, not ${text}`, {
    hint: `for example: ${option} 2, ${option} 25%`,
  })
}

/** `5`, `25%`, or `1,10%,50%`, whose last step repeats (contract §4). */
export function parseBatchSize(text: string): BatchSize {
  const steps = text.split(',').map((step) => countOrPercent('--batch-size', step.trim()))
  return steps.length === 1 && steps[0] !== undefined ? steps[0] : steps
}

export function parseMaxFailures(text: string): MaxFailures {
  return countOrPercent('--max-failures', text)
}

export function parseStrategy(text: string): Strategy {
  const found = strategies.find((strategy) => strategy === text.toUpperCase())
  if (found !== undefined) return found
  throw new RsmError('usage', `unknown strategy: ${text}`, {
    hint: `one of ${strategies.map((strategy) => strategy.toLowerCase()).join(', ')}`,
  })
}
