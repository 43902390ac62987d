import { type FieldFault, invalid } from '../../core/errors.ts'
import type { Schedule, ScheduleCreate } from '../../core/protocol/http/schedules.ts'
import { slotsOf, type Timing, timingFaults } from '../../core/schedules/timing.ts'
import { durationSeconds, durationText } from '../../core/text/duration.ts'

/** Kind of timing, by API name. */
export type TimingKind = 'cron' | 'everySeconds' | 'at'

type Field = (name: string) => string

export type TypedTiming = Pick<
  ScheduleCreate,
  'cron' | 'everySeconds' | 'at' | 'timezone' | 'from' | 'until' | 'jitterSeconds'
>

const shownSlots = 5

/** `2026-11-24T03:30:00`, local, for datetime fields. */
export function localText(iso: string | null): string {
  if (iso === null) return ''
  const date = new Date(iso)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}

const timeOf = (text: string) => (text === '' ? undefined : new Date(text).toISOString())

/** Seconds in a field; undefined if empty. Errors: `invalid` if not a duration. */
export function secondsOf(field: Field, name: string): number | undefined {
  const text = field(name).trim()
  if (text === '') return undefined
  const seconds = durationSeconds(text)
  if (seconds === null) throw invalid([{ field: name, message: 'use 90s, 5m or 2h' }])
  return seconds
}

/** Timing from the form. Errors: `invalid` for an invalid duration. */
export function timingOf(field: Field, kind: TimingKind): TypedTiming {
  const timing: Record<keyof TypedTiming, string | number | undefined> = {
    cron: kind === 'cron' ? field('cron').trim() : undefined,
    everySeconds: kind === 'everySeconds' ? secondsOf(field, 'everySeconds') : undefined,
    at: kind === 'at' ? timeOf(field('at')) : undefined,
    timezone: field('timezone').trim() || undefined,
    from: timeOf(field('from')),
    until: timeOf(field('until')),
    jitterSeconds: secondsOf(field, 'jitterSeconds'),
  }
  return Object.fromEntries(Object.entries(timing).filter(([, value]) => value !== undefined))
}

export function timingFields(schedule: Schedule): Record<string, string> {
  const { cron, everySeconds, at, timezone, from, until, jitterSeconds } = schedule
  return {
    cron: cron ?? '',
    everySeconds: everySeconds === null ? '' : durationText(everySeconds),
    at: localText(at),
    timezone,
    from: localText(from),
    until: localText(until),
    jitterSeconds: jitterSeconds === 0 ? '' : durationText(jitterSeconds),
  }
}

/** Next times of a timing, or its faults with the server's messages. */
export type Preview = { times: readonly string[] } | { faults: readonly FieldFault[] }

/** Previews a timing that starts at `now`, milliseconds since 1970. */
export function previewOf(typed: TypedTiming, now: number): Preview {
  const { cron = null, everySeconds = null, at = null, timezone = 'UTC', from = null, until = null } = typed
  const base = from ?? new Date(now).toISOString()
  const jitterSeconds = typed.jitterSeconds ?? 0
  const timing: Timing = { cron, everySeconds, at, timezone, from, until, jitterSeconds, base }
  const faults = timingFaults(timing, now)
  if (faults.length > 0) return { faults }
  const slots = slotsOf(timing)
  const times: string[] = []
  for (let slot = slots.next(now); slot !== null && times.length < shownSlots; slot = slots.next(slot))
    times.push(new Date(slot).toISOString())
  return { times }
}
