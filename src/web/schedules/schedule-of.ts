import type { Schedule, ScheduleCreate, SchedulePatch } from '../../core/protocol/http/schedules.ts'
import type { Script } from '../../core/protocol/http/scripts.ts'
import type { GateOption } from '../../core/protocol/http/tasks.ts'
import { paramField, taskOf } from '../run/task-of.ts'
import { durationText, secondsOf, type TimingKind, timingFields, timingOf } from './timing-of.ts'

type Field = (name: string) => string

/**
 * The body of `POST /api/schedules` for the fields of the form; `declared` are the params of all its stored scripts. Errors:
 * `invalid` with what is missing or no duration, at its field.
 */
export function scheduleOf(field: Field, kind: TimingKind, declared: Script['params'] = []): ScheduleCreate {
  const missedWithinSeconds = secondsOf(field, 'missedWithinSeconds')
  return {
    name: field('name').trim(),
    ...timingOf(field, kind),
    ...taskOf(field, [], declared),
    overlap: field('overlap') as NonNullable<ScheduleCreate['overlap']>,
    missed: field('missed') as NonNullable<ScheduleCreate['missed']>,
    ...(missedWithinSeconds !== undefined && { missedWithinSeconds }),
  }
}

/** The body where a file is copied in place of a script. */
export function copying(
  { script: _script, scriptId: _scriptId, ...rest }: ScheduleCreate,
  copy: NonNullable<ScheduleCreate['copy']>,
): ScheduleCreate {
  return { ...rest, copy }
}

const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

/** Others of these replace them: they are not taken away by themselves. */
const replaced = new Set(['cron', 'everySeconds', 'at', 'scriptId', 'script', 'copy'])

function paramsPatch(before: Record<string, string>, now: Record<string, string>) {
  const taken = Object.keys(before).filter((name) => !(name in now))
  const given = Object.entries(now).filter(([name, value]) => before[name] !== value)
  return Object.fromEntries([...taken.map((name) => [name, null]), ...given])
}

/** What has been changed between two bodies, as a body of PATCH: what is left out stays, null resets (RFC 7396). */
export function patchOf(before: ScheduleCreate, now: ScheduleCreate): SchedulePatch {
  const { params: paramsBefore = {}, secretParams: _, ...plainBefore } = before
  const { params = {}, secretParams, ...plain } = now
  const names = Object.keys({ ...plainBefore, ...plain }) as (keyof typeof plain)[]
  const changed = names
    .filter((name) => !same(plainBefore[name], plain[name]))
    .filter((name) => plain[name] !== undefined || !replaced.has(name))
    .map((name) => [name, plain[name] ?? null])
  const patch = paramsPatch(paramsBefore, params)
  return {
    ...Object.fromEntries(changed),
    ...(Object.keys(patch).length > 0 && { params: patch }),
    ...(secretParams !== undefined && { secretParams }),
  }
}

const text = (value: string | number | undefined) => (value === undefined ? '' : `${value}`)

function gateFields(gate: 'verify' | 'rollback', { script }: GateOption = {}): Record<string, string> {
  return {
    [`${gate}.script.content`]: script?.content ?? '',
    [`${gate}.script.type`]: script?.type ?? 'BASH',
    [`${gate}.script.timeout`]: text(script?.timeout),
  }
}

/** The fields of the form for a schedule; `declared` are the params of its stored scripts. */
export function scheduleFields(schedule: Schedule, declared: Script['params']): Record<string, string> {
  const { script, params, strategy, timeout, runAs, verify, rollback } = schedule
  const own = new Set(declared.map((param) => param.name))
  const others = Object.entries(params).filter(([param]) => !own.has(param))
  return {
    ...timingFields(schedule),
    overlap: schedule.overlap,
    missed: schedule.missed,
    missedWithinSeconds: durationText(schedule.missedWithinSeconds),
    content: script?.content ?? '',
    type: script?.type ?? 'BASH',
    params: others.map(([param, value]) => `${param}=${value}`).join('\n'),
    ...Object.fromEntries(
      declared
        .filter(({ secret }) => !secret)
        .map((param) => [paramField(param.name), params[param.name] ?? param.default ?? '']),
    ),
    strategy: strategy ?? 'PARALLEL',
    timeout: text(timeout),
    runAs: runAs ?? '',
    ...gateFields('verify', verify),
    'verify.retries': text(verify?.retries),
    'verify.intervalSeconds': text(verify?.intervalSeconds),
    'verify.timeout': text(verify?.timeout),
    ...gateFields('rollback', rollback),
  }
}
