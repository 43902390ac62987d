import { type FieldFault, invalid } from '../../core/errors.ts'
import type { Schedule, ScheduleCreate, SchedulePatch } from '../../core/protocol/http/schedules.ts'
import type { Script } from '../../core/protocol/http/scripts.ts'
import type { AdHocScript, GateOption } from '../../core/protocol/http/tasks.ts'
import { slotsOf, type Timing, timingFaults } from '../../core/schedules/timing.ts'
import { durationSeconds, durationText } from '../../core/text/duration.ts'
import { optionFields } from '../run/options-of.ts'
import { type CopiedFile, copyFields, copyTaskOf, nameOf, paramField, taskOf } from '../run/task-of.ts'

type Field = (name: string) => string

interface Chosen {
  kind: TimingKind
  isCopy: boolean
  /** Params that its scripts declare, and named secret ones. */
  declared?: Script['params']
  /** A chosen file to copy or to use as stdin, uploaded before saving. */
  file?: CopiedFile | undefined
  schedule?: Schedule | undefined
}

/** Keeps what the form has no field for: timeout, and a name that is not the first line. */
function mergeScript(script: AdHocScript, kept: AdHocScript | null | undefined): AdHocScript {
  if (kept == null) return script
  const isNamed = kept.name !== undefined && kept.name !== nameOf(kept.content)
  return { ...kept, ...script, ...(isNamed && { name: kept.name }) }
}

const mergeGate = (gate: GateOption, kept: GateOption | undefined) =>
  gate.script === undefined ? {} : { script: mergeScript(gate.script, kept?.script) }

/** Stdin of the script: the chosen file, or the current one. */
function stdinOf(field: Field, { file, schedule }: Chosen): Pick<ScheduleCreate, 'stdin'> {
  if (file !== undefined) return { stdin: { fileId: '' } }
  return schedule?.stdin === undefined || field('noStdin') !== '' ? {} : { stdin: schedule.stdin }
}

function scriptOf(field: Field, chosen: Chosen) {
  const { declared, schedule } = chosen
  const { verify, rollback, script, ...task } = taskOf(field, schedule?.target, declared)
  return {
    ...task,
    ...(script && { script: mergeScript(script, schedule?.script) }),
    ...(verify && { verify: { ...verify, ...mergeGate(verify, schedule?.verify) } }),
    ...(rollback && { rollback: { ...rollback, ...mergeGate(rollback, schedule?.rollback) } }),
    ...stdinOf(field, chosen),
  }
}

/** Body of a new schedule; the `fileId` of a chosen file is empty. Errors: `invalid` at the fields. */
export function scheduleOf(field: Field, chosen: Chosen): ScheduleCreate {
  const { schedule } = chosen
  const missedWithinSeconds = secondsOf(field, 'missedWithinSeconds')
  return {
    name: field('name').trim(),
    ...timingOf(field, chosen.kind),
    ...(chosen.isCopy
      ? copyTaskOf(field, schedule?.target, chosen.file, schedule?.copy)
      : scriptOf(field, chosen)),
    overlap: field('overlap') as NonNullable<ScheduleCreate['overlap']>,
    missed: field('missed') as NonNullable<ScheduleCreate['missed']>,
    ...(missedWithinSeconds !== undefined && { missedWithinSeconds }),
  }
}

const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

/** Fields that replace each other, so that null is not needed to remove one. */
const replaced = new Set(['cron', 'everySeconds', 'at', 'scriptId', 'script', 'copy'])

function paramsPatch(before: Record<string, string>, now: Record<string, string>) {
  const taken = Object.keys(before).filter((name) => !(name in now))
  const given = Object.entries(now).filter(([name, value]) => before[name] !== value)
  return Object.fromEntries([...taken.map((name) => [name, null]), ...given])
}

/** Differences as a PATCH body: null resets (RFC 7396). `dropped`: secret params no longer used. */
export function patchOf(
  before: ScheduleCreate,
  now: ScheduleCreate,
  dropped: readonly string[] = [],
): SchedulePatch {
  const { params: paramsBefore = {}, secretParams: _, ...plainBefore } = before
  const { params = {}, secretParams, ...plain } = now
  const names = Object.keys({ ...plainBefore, ...plain }) as (keyof typeof plain)[]
  const changed = names
    .filter((name) => !same(plainBefore[name], plain[name]))
    .filter((name) => plain[name] !== undefined || !replaced.has(name))
    .map((name) => [name, plain[name] ?? null])
  const patch = paramsPatch(paramsBefore, params)
  const secrets = { ...Object.fromEntries(dropped.map((name) => [name, null])), ...secretParams }
  return {
    ...Object.fromEntries(changed),
    ...(Object.keys(patch).length > 0 && { params: patch }),
    ...(Object.keys(secrets).length > 0 && { secretParams: secrets }),
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

/** Form fields for a schedule, with its params if the action is its own; `declared` by its scripts. */
export function scheduleFields(
  schedule: Schedule,
  declared: Script['params'],
  isOwn = true,
): Record<string, string> {
  const { script, copy, verify, rollback } = schedule
  const params = isOwn ? schedule.params : {}
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
    ...optionFields(schedule),
    ...(copy && copyFields(copy)),
    ...gateFields('verify', verify),
    'verify.retries': text(verify?.retries),
    'verify.intervalSeconds': text(verify?.intervalSeconds),
    'verify.timeout': text(verify?.timeout),
    ...gateFields('rollback', rollback),
  }
}

/** Kind of timing, by API name. */
export type TimingKind = 'cron' | 'everySeconds' | 'at'

export type TypedTiming = Pick<
  ScheduleCreate,
  'cron' | 'everySeconds' | 'at' | 'timezone' | 'from' | 'until' | 'jitterSeconds'
>

const shownSlots = 5

/** `2026-11-24T03:30:00`, local, for datetime fields. */
function localText(iso: string | null): string {
  if (iso === null) return ''
  const date = new Date(iso)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}

const timeOf = (text: string) => (text === '' ? undefined : new Date(text).toISOString())

/** Seconds in a field; undefined if empty. Errors: `invalid` if not a duration. */
function secondsOf(field: Field, name: string): number | undefined {
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
type Preview = { times: readonly string[] } | { faults: readonly FieldFault[] }

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
