import type { FieldFault } from '../errors.ts'
import { type CronSlots, parseCron, unknownZone, yearsToSlot, zoneOf } from './cron.ts'

/** Timing of a schedule as stored; times are ISO 8601. Exactly one of the first three is not null. */
export interface Timing {
  readonly cron: string | null
  readonly everySeconds: number | null
  readonly at: string | null
  readonly timezone: string
  readonly from: string | null
  readonly until: string | null
  readonly jitterSeconds: number
  /** Origin from which slots of `everySeconds` are counted. */
  readonly base: string
}

/** Slots are milliseconds since 1970, before jitter. */
export interface Slots {
  /** First slot after an instant; null: none. */
  next(after: number): number | null
  /** Due time of a slot of this schedule: never after the next slot. */
  dueAt(scheduleId: number, slot: number): number
  /** Slots in (after, upTo]; null: none. */
  within(after: number, upTo: number): SlotRange | null
}

/** Consecutive slots; `count` is null if there are too many to count. */
export interface SlotRange {
  readonly first: number
  readonly last: number
  readonly count: number | null
}

/** Most slots of a cron expression that are counted one by one. */
const mostCounted = 200
/** Slots compared to find the shortest interval of a cron expression. */
const maxCompared = 64
const second = 1000
const steps = [3600, 86_400, 40 * 86_400, yearsToSlot * 366 * 86_400].map((seconds) => seconds * second)

const timeOf = (text: string | null) => (text === null ? null : Date.parse(text))

function everySlots(base: number, every: number): CronSlots {
  return { next: (after) => base + (Math.floor((after - base) / every) + 1) * every }
}

/** Faults of a timing; empty if it is valid. `now` is when it takes effect. */
export function timingFaults(timing: Timing, now: number): FieldFault[] {
  const { cron, everySeconds, at, timezone, from, until, jitterSeconds } = timing
  const given = [cron, everySeconds, at].filter((one) => one !== null).length
  if (given !== 1) return [{ field: 'cron', message: 'give exactly one of cron, everySeconds and at' }]
  const faults: FieldFault[] = []
  const zone = zoneOf(timezone)
  if (zone === null) faults.push({ field: 'timezone', message: unknownZone(timezone) })
  else if (cron !== null) {
    const parsed = parseCron(cron, zone)
    if ('fault' in parsed) faults.push({ field: 'cron', message: parsed.fault })
    else if (parsed.next(now) === null)
      faults.push({ field: 'cron', message: `never runs: no slot in ${yearsToSlot} years` })
  }
  if (at !== null && Date.parse(at) <= now) faults.push({ field: 'at', message: 'is in the past' })
  if (from !== null && until !== null && Date.parse(until) < Date.parse(from))
    faults.push({ field: 'until', message: 'is before `from`' })
  if (until !== null && Date.parse(until) <= now) faults.push({ field: 'until', message: 'is in the past' })
  if (faults.length > 0) return faults
  const slots = slotsOf(timing)
  if (slots.next(now) === null)
    return [
      at !== null && from !== null && at < from
        ? { field: 'at', message: 'is before `from`' }
        : { field: 'until', message: 'leaves no slot: the first one is later' },
    ]
  const shortest = shortestInterval(slots, now)
  if (jitterSeconds > 0 && shortest !== null && jitterSeconds * second >= shortest)
    faults.push({
      field: 'jitterSeconds',
      message: `must be less than the interval, which is ${shortest / second} s`,
    })
  return faults
}

/** Null if there are fewer than two slots. */
function shortestInterval(slots: Slots, now: number): number | null {
  let shortest: number | null = null
  let before = slots.next(now)
  for (let compared = 0; before !== null && compared < maxCompared; compared++) {
    const next = slots.next(before)
    if (next !== null && (shortest === null || next - before < shortest)) shortest = next - before
    before = next
  }
  return shortest
}

/** Like `slotsOf`; null for an invalid timing: its writer may have had other time zones. */
export function slotsIfKnown(timing: Timing): Slots | null {
  try {
    return slotsOf(timing)
  } catch {
    return null
  }
}

/** Slots of a valid timing. @throws Error if it has faults. */
export function slotsOf(timing: Timing): Slots {
  const { everySeconds, jitterSeconds } = timing
  const from = timeOf(timing.from)
  const until = timeOf(timing.until)
  const ticks = ticksOf(timing)

  function next(after: number): number | null {
    const slot = ticks.next(from === null ? after : Math.max(after, from - 1))
    return slot === null || (until !== null && slot > until) ? null : slot
  }

  function counted(after: number, upTo: number): SlotRange | null {
    const first = next(after)
    if (first === null || first > upTo) return null
    let last = first
    for (let count = 1; ; count++) {
      const slot = next(last)
      if (slot === null || slot > upTo) return { first, last, count }
      last = slot
      if (count >= mostCounted) return { first, last: lastBefore(last, upTo), count: null }
    }
  }

  /** The last slot up to an instant, from an earlier slot that is too far away to iterate from. */
  function lastBefore(slot: number, upTo: number): number {
    for (const step of steps) {
      let found = upTo - step <= slot ? slot : next(upTo - step)
      if (found === null || found > upTo) continue
      for (let later = next(found); later !== null && later <= upTo; later = next(later)) found = later
      return found
    }
    return slot
  }

  return {
    next,
    dueAt(scheduleId, slot) {
      const following = next(slot)
      const bound = jitterSeconds * second
      return slot + jitterOf(scheduleId, slot, following === null ? bound : Math.min(bound, following - slot))
    },
    within(after, upTo) {
      if (everySeconds === null) return counted(after, upTo)
      const first = next(after)
      const end = until === null ? upTo : Math.min(upTo, until)
      if (first === null || first > end) return null
      const more = Math.floor((end - first) / (everySeconds * second))
      return { first, last: first + more * everySeconds * second, count: more + 1 }
    },
  }
}

function ticksOf({ cron, everySeconds, at, timezone, base }: Timing): CronSlots {
  if (everySeconds !== null) return everySlots(Date.parse(base), everySeconds * second)
  if (at !== null) {
    const slot = Date.parse(at)
    return { next: (after) => (slot > after ? slot : null) }
  }
  const zone = zoneOf(timezone)
  const parsed = zone === null ? { fault: unknownZone(timezone) } : parseCron(cron ?? '', zone)
  if ('fault' in parsed) throw new Error(`cron ${cron}: ${parsed.fault}`)
  return parsed
}

/** FNV-1a, 32 bits: spreads well enough, and is the same on every server. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193) >>> 0
  return value
}

/** Milliseconds by which a slot is delayed: constant for this slot of this schedule, and less than `bound`. */
export function jitterOf(scheduleId: number, plannedAt: number, bound: number): number {
  return bound <= 0 ? 0 : hash(`${scheduleId}/${plannedAt}/`) % bound
}
