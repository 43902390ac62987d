import { BoundedMap } from '../bounded-map.ts'
import { nearest } from '../text/nearest.ts'

const second = 1000
const day = 24 * 3600 * second

/** Wall time as UTC would show it: milliseconds whose UTC fields are those of the clock on the wall. */
export type Wall = number

/** A time zone of the IANA data base, as this program's ICU knows it. */
export interface Zone {
  readonly name: string
  /** What a clock on the wall shows at an instant, without the milliseconds. */
  wallAt(instant: number): Wall
  /** The first instant at which the clock shows this; for a time that a change of clocks skips, the first one after the gap. */
  firstAt(wall: Wall): number
  /** The first instant in (`from`, `to`] from which the clock is ahead of UTC by another time than at `from`; null: none. */
  changeIn(from: number, to: number): number | null
}

/** Days whose offset is remembered; asking ICU takes most of the time of a search. */
const mostDays = 5000
/** More than there are, each by any spelling that is asked for. */
const mostZones = 600
const zones = new BoundedMap<string, Zone>(mostZones)

/** A zone, or null where there is none of this name. Offsets such as `+02:00` are no zones: they know no summer. */
export function zoneOf(name: string): Zone | null {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return null
  const known = zones.get(name)
  if (known) return known
  const found = open(name)
  if (found) zones.set(name, found)
  return found
}

function open(name: string): Zone | null {
  let format: Intl.DateTimeFormat
  try {
    const parts = { year: 'numeric', month: 'numeric', day: 'numeric' } as const
    const clock = { hour: 'numeric', minute: 'numeric', second: 'numeric' } as const
    format = new Intl.DateTimeFormat('en-US', { timeZone: name, hourCycle: 'h23', ...parts, ...clock })
  } catch {
    return null
  }
  /** How far the clock is ahead of UTC, as ICU has it: of `11/23/2026, 03:30:00`. */
  const looked = (instant: number): number => {
    const fields = format.format(instant).split(/[^0-9]+/)
    const [month = 0, date = 0, year = 0, hour = 0, minute = 0, at = 0] = fields.map(Number)
    return Date.UTC(year, month - 1, date, hour, minute, at) - Math.floor(instant / second) * second
  }
  const days = new BoundedMap<number, number>(mostDays)
  const atDay = (number: number): number => {
    const known = days.get(number)
    if (known !== undefined) return known
    const offset = looked(number * day)
    days.set(number, offset)
    return offset
  }
  const offsetAt = (instant: number): number => {
    const number = Math.floor(instant / day)
    const offset = atDay(number)
    return offset === atDay(number + 1) ? offset : looked(instant)
  }

  function changeIn(from: number, to: number): number | null {
    const before = offsetAt(from)
    if (offsetAt(to) === before) return null
    let [low, high] = [Math.floor(from / second), Math.ceil(to / second)]
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (offsetAt(middle * second) === before) low = middle
      else high = middle
    }
    return high * second
  }

  return {
    name,
    wallAt: (instant) => Math.floor(instant / second) * second + offsetAt(instant),
    firstAt(wall) {
      // A clock is never a day off, and never changes twice within two.
      const before = offsetAt(wall - day)
      const early = wall - before
      if (offsetAt(early) === before) return early
      const late = wall - offsetAt(wall + day)
      if (late + offsetAt(late) === wall) return late
      return changeIn(wall - day - before, wall + day - before) ?? early
    },
    changeIn,
  }
}

/** Why there is no such zone, with the one that was probably meant. */
export function unknownZone(name: string): string {
  const known = ['UTC', ...Intl.supportedValuesOf('timeZone')]
  const city = (zone: string) => zone.slice(zone.lastIndexOf('/') + 1)
  const cities = new Map(known.map((zone) => [city(zone), zone]))
  const near = nearest(name, known) ?? nearest(name, cities.keys())
  const meant = near === undefined ? undefined : (cities.get(near) ?? near)
  const hint = meant === undefined ? ': use one like Europe/Berlin, or UTC' : ` (did you mean ${meant}?)`
  return `unknown time zone ${name}${hint}`
}
