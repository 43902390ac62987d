import { Cron, CronDate } from 'croner'
import { BoundedMap } from '../bounded-map.ts'
import { nearest } from '../text/nearest.ts'

const second = 1000
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

/** Local time as milliseconds whose UTC fields are those of the local clock. */
type Wall = number

/** A time zone of the IANA database, as known to this program's ICU. */
export interface Zone {
  readonly name: string
  readonly canonical: string
  /** Local time at an instant, without the milliseconds. */
  wallAt(instant: number): Wall
  /** First instant with this local time; if a clock change skips it, the first one after the gap. */
  firstAt(wall: Wall): number
}

/** More than there are zones; each spelling that is requested is an entry. */
const mostZones = 600
const zones = new BoundedMap<string, Zone>(mostZones)

/** Null for an unknown name. Offsets such as `+02:00` are not zones, because they have no summer time. */
export function zoneOf(name: string): Zone | null {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return null
  const known = zones.get(name)
  if (known) return known
  const found = open(name)
  if (found) zones.set(name, found)
  return found
}

function open(name: string): Zone | null {
  let canonical: string
  try {
    // croner caches a formatter per name forever: use one spelling only.
    canonical = new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone
  } catch {
    return null
  }
  function wallAt(instant: number): Wall {
    const { year, month, day, hour, minute, second } = new CronDate(new Date(instant), canonical)
    return Date.UTC(year, month, day, hour, minute, second)
  }
  return {
    name,
    canonical,
    wallAt,
    firstAt(wall) {
      const local = new CronDate(new Date(wall), 'UTC')
      local.tz = canonical
      // croner moves a skipped time to the other side of the gap, by the length of the gap.
      let high = local.getTime()
      const ahead = wallAt(high) - high
      for (let low = wall - ahead; high - low > second; ) {
        const middle = Math.floor((low + high) / 2 / second) * second
        if (wallAt(middle) - middle === ahead) high = middle
        else low = middle
      }
      return high
    },
  }
}

/** Message for an unknown zone, with the one that was probably meant. */
export function unknownZone(name: string): string {
  const known = ['UTC', ...Intl.supportedValuesOf('timeZone')]
  const city = (zone: string) => zone.slice(zone.lastIndexOf('/') + 1)
  const cities = new Map(known.map((zone) => [city(zone), zone]))
  const near = nearest(name, known) ?? nearest(name, cities.keys())
  const meant = near === undefined ? undefined : (cities.get(near) ?? near)
  const hint = meant === undefined ? ': use one like Europe/Berlin, or UTC' : ` (did you mean ${meant}?)`
  return `unknown time zone ${name}${hint}`
}
