import { CronDate } from 'croner'
import { BoundedMap } from '../bounded-map.ts'
import { nearest } from '../text/nearest.ts'

const second = 1000

/** Local time as milliseconds whose UTC fields are those of the local clock. */
export type Wall = number

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
