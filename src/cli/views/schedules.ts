import type { Schedule, ScheduleSlot, ScheduleSummary } from '../../core/protocol/http/schedules.ts'
import { firstLine } from '../../core/scripts/script-form.ts'
import { durationText } from '../../core/text/duration.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { showTime } from '../text/time.ts'

export type Timed = Pick<Schedule, 'cron' | 'everySeconds' | 'at' | 'timezone'>
type Resting = Pick<Schedule, 'enabled' | 'suspended' | 'nextAt'>

/** `30 3 * * 1-5 Europe/Berlin`, `every 90s`, `at 2026-11-24 03:30:00Z` */
export function timingOf({ cron, everySeconds, at, timezone }: Timed, utc: boolean): string {
  if (cron !== null) return timezone === 'UTC' ? cron : `${cron} ${timezone}`
  return everySeconds === null ? `at ${showTime(at, utc)}` : `every ${durationText(everySeconds)}`
}

/** Warning about an interval under a minute, or null. */
export function oftenNote(everySeconds: number | null): string | null {
  if (everySeconds === null || everySeconds >= 60) return null
  const tasks = Math.floor(86_400 / everySeconds).toLocaleString('en-US')
  return `warning: every ${durationText(everySeconds)} is up to ${tasks} tasks a day, each on all its hosts`
}

/** Why it does not run automatically, or null. */
export function restOf({ enabled, suspended, nextAt }: Resting): 'SUSPENDED' | 'PAUSED' | 'OVER' | null {
  if (suspended !== null) return 'SUSPENDED'
  if (!enabled) return 'PAUSED'
  return nextAt === null ? 'OVER' : null
}

/** Next run, or why there is none. */
export const nextOf = (schedule: Resting, utc: boolean): string =>
  restOf(schedule)?.toLowerCase() ?? showTime(schedule.nextAt, utc)

/** The target in readable form: `web[1-3],@prod, tagged role=web, except web2`. */
export function targetOf({ target }: Pick<Schedule, 'target'>): string {
  const { selector, clusterId, hostIds = [], hosts = [], clusters = [], tags = [], exclude = [] } = target
  if (selector !== undefined) return selector
  if (clusterId !== undefined) return `cluster ${clusterId}`
  const named = [
    ...hostIds.map((id) => `@id:${id}`),
    ...hosts,
    ...clusters.map((name) => (name.includes(' ') ? `cluster ${name}` : `@${name}`)),
  ]
  return [
    named.join(',') || 'all hosts',
    ...tags.map((tag) => `tagged ${tag}`),
    ...exclude.map((part) => `except ${part}`),
  ].join(', ')
}

export function actionOf({
  script,
  scriptId,
  copy,
}: Pick<ScheduleSummary, 'script' | 'scriptId' | 'copy'>): string {
  if (copy !== null) return `copy to ${sanitizeLine(copy.path)}`
  return nameOf({ script, scriptId })
}

export const gateOf = (gate: Schedule['verify' | 'rollback']): string | null =>
  gate === undefined ? null : nameOf(gate)

interface Named {
  script?: ScheduleSummary['script']
  scriptId?: number | null
}

function nameOf({ script, scriptId }: Named): string {
  if (script == null) return `stored script ${scriptId}`
  return sanitizeLine(script.name ?? script.firstLine ?? firstLine(script.content ?? '') ?? '')
}

/** Outcome of a slot: a task, an error, or why it was skipped. */
export function outcomeOf({ outcome, taskId, error, why, by }: ScheduleSlot): string {
  if (outcome === 'STARTED') return by === null ? `task ${taskId}` : `task ${taskId}, run by ${by}`
  return outcome === 'FAILED' ? sanitizeLine(error ?? '') : `skipped: ${(why ?? '').toLowerCase()}`
}

/** Local time in a zone with its offset: `2026-11-24 03:30:00+01:00`. */
export function timeIn(zone: string, iso: string): string {
  const date = new Date(iso)
  const parts = new Intl.DateTimeFormat('en-CA', {
    timeZone: zone,
    hourCycle: 'h23',
    dateStyle: 'short',
    timeStyle: 'medium',
  }).format(date)
  const [day = '', time = ''] = parts.split(', ')
  const offset = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' }).format(date)
  const [, ahead = ''] = /GMT([+-]\d\d:\d\d)/.exec(offset) ?? []
  return `${day} ${time}${ahead === '' ? 'Z' : ahead}`
}
