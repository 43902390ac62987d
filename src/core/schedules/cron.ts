import { Cron } from 'croner'
import { nearest } from '../text/nearest.ts'
import type { Wall, Zone } from './zone.ts'

const year = 366 * 24 * 3600_000
/** Years without a slot after which an expression counts as one that never comes (contract §14). */
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
/** One entry of the list that a field is, by field: the library takes more, which other crons read in other ways. */
const entries = [
  number,
  number,
  'L|0?[1-9]|[12][0-9]|3[01]',
  `${months}|0?[1-9]|1[0-2]`,
  `(?:${days}|${number})L?`,
].map((value) => new RegExp(`^(?:\\*|(?:${value})(?:-(?:${value}))?)(?:/[0-9]{1,2})?$`, 'i'))

/** The slots of a cron expression. */
export interface CronSlots {
  /** The first slot after an instant, both in milliseconds; null where none comes within `yearsToSlot` years. */
  next(after: number): number | null
}

/** What is wrong with an expression, for people. */
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
 * An expression of five fields, or a nickname such as `@hourly`, in a zone (contract §14).
 *
 * Where the hour field names hours, each local time is one slot: one that a change of clocks skips is the first moment after
 * it, one that comes twice is its first. Where that field begins with `*`, each moment is judged by itself, as croner does: what is
 * skipped does not come, and what comes twice are two slots.
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
  // As in cronie: `*/2` is a star, beside which the other day field must match too.
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

/** One slot for each local time. Later local times never come at earlier instants, so the first that is later is the next. */
function namedSlots(zone: Zone, nextWall: (wall: Wall) => Wall | null) {
  return (after: number): number | null => {
    for (let wall = nextWall(zone.wallAt(after)); wall !== null; wall = nextWall(wall)) {
      const instant = zone.firstAt(wall)
      if (instant > after) return instant
    }
    return null
  }
}
