import { Cron } from 'croner'
import { nearest } from '../text/nearest.ts'
import type { Wall, Zone } from './zone.ts'

const year = 366 * 24 * 3600_000
/** Years without a slot after which an expression counts as one that never runs (contract §14). */
export const yearsToSlot = 8

const nicknames = new Map([
  ['@hourly', '0 * * * *'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@weekly', '0 0 * * 0'],
  ['@monthly', '0 0 1 * *'],
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
])
const fields = ['minute', 'hour', 'day of the month', 'month', 'day of the week'] as const
const months = 'JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC'
const days = 'SUN|MON|TUE|WED|THU|FRI|SAT'
const number = '[0-9]{1,2}'
/** Valid list entries of each field. croner accepts more, which other crons interpret differently. */
const entries = [
  number,
  number,
  'L|0?[1-9]|[12][0-9]|3[01]',
  `${months}|0?[1-9]|1[0-2]`,
  `(?:${days}|${number})L?`,
].map((value) => new RegExp(`^(?:\\*|(?:${value})(?:-(?:${value}))?)(?:/[0-9]{1,2})?$`, 'i'))

export interface CronSlots {
  /** First slot after an instant, both in milliseconds; null if there is none within `yearsToSlot` years. */
  next(after: number): number | null
}

export interface CronFault {
  readonly fault: string
}

function unknownNickname(text: string): CronFault {
  const meant = nearest(text, [...nicknames.keys()])
  return {
    fault: `${text} is unknown; ${meant ? `did you mean ${meant}?` : [...nicknames.keys()].join(', ')}`,
  }
}

function fieldFault(given: readonly string[]): string | null {
  for (const [at, text] of given.entries()) {
    const bad = text.split(',').find((entry) => !(entries[at] as RegExp).test(entry))
    if (bad !== undefined)
      return `its ${fields[at]} ${text} has ${bad === '' ? 'an empty entry' : `the invalid entry ${bad}`}`
  }
  return null
}

/**
 * Parses an expression of five fields, or a nickname such as `@hourly`, in a zone (contract §14).
 *
 * If the hour field names hours, each local time is one slot: a time that a clock change skips runs at the first
 * moment after it, a repeated one at its first occurrence. If that field begins with `*`, each moment is matched alone,
 * as in croner: a skipped time has no slot, and a repeated one has two.
 */
export function parseCron(text: string, zone: Zone): CronSlots | CronFault {
  const trimmed = text.trim()
  const known = nicknames.get(trimmed.toLowerCase())
  if (trimmed.startsWith('@') && known === undefined) return unknownNickname(trimmed)
  const given = (known ?? trimmed).split(/\s+/)
  if (given.length !== fields.length)
    return { fault: `takes five fields (${fields.join(', ')}), not ${given.length}` }
  const unread = fieldFault(given)
  if (unread !== null) return { fault: unread }
  // As in cronie, a field like `*/2` counts as a star, so both day fields must match.
  const domAndDow = [given[2], given[4]].some((field) => field?.startsWith('*'))
  const isElapsed = given[1]?.split(',').some((entry) => entry.startsWith('*')) === true
  let cron: Cron
  try {
    const timezone = isElapsed ? zone.canonical : 'UTC'
    cron = new Cron(given.join(' '), { mode: '5-part', timezone, paused: true, domAndDow })
  } catch (error) {
    const fault = (error instanceof Error ? error.message : String(error)).replace(/^CronPattern: /, '')
    return { fault: fault.charAt(0).toLowerCase() + fault.slice(1) }
  }
  const nextRun = (after: number) => cron.nextRun(new Date(after))?.getTime() ?? null
  const next = isElapsed ? nextRun : namedSlots(zone, nextRun)
  return {
    next(after) {
      const slot = next(after)
      return slot === null || slot > after + yearsToSlot * year ? null : slot
    },
  }
}

/** One slot per local time. A later local time never has an earlier instant, so the first later one is next. */
function namedSlots(zone: Zone, nextWall: (wall: Wall) => Wall | null) {
  return (after: number): number | null => {
    for (let wall = nextWall(zone.wallAt(after)); wall !== null; wall = nextWall(wall)) {
      const instant = zone.firstAt(wall)
      if (instant > after) return instant
    }
    return null
  }
}
