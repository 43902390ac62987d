import { isDeepStrictEqual } from 'node:util'
import type {
  Schedule,
  ScheduleCreate,
  SchedulePatch,
  ScheduleSlot,
  ScheduleSummary,
} from '../../../core/protocol/http/schedules.ts'
import { type AdHocScript, type GateOption, runOptions } from '../../../core/protocol/http/tasks.ts'
import { type Slots, slotsIfKnown, type Timing } from '../../../core/schedules/timing.ts'
import { firstLine } from '../../../core/scripts/script-form.ts'
import { isoTime } from '../../../disk/clock.ts'
import { pick } from '../../storage/records/records.ts'
import type { ScheduleRecord, SlotRecord } from '../../storage/records/schedule.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import { patched, patchedMap } from '../context.ts'

/** Fields of a schedule that a user sets. */
export type Said = Timing &
  Pick<
    ScheduleRecord,
    | 'name'
    | 'scriptId'
    | 'script'
    | 'copy'
    | 'target'
    | 'options'
    | 'enabled'
    | 'overlap'
    | 'missed'
    | 'missedWithinSeconds'
  >

const optionNames = Object.keys(runOptions) as (keyof typeof runOptions)[]
const defaults = { overlap: 'SKIP', missed: 'ONCE', missedWithinSeconds: 3600, jitterSeconds: 0 } as const

/** Converts a time of any zone to UTC, as records store it. */
const utc = (time: string | null | undefined) => (time ? isoTime(Date.parse(time)) : (time ?? null))

/** `at`: the time of writing, from which slots without `from` are counted. */
export function saidBy(input: ScheduleCreate, at: string): Said {
  const from = utc(input.from)
  const given = optionNames.filter((name) => input[name] !== undefined).map((name) => [name, input[name]])
  return {
    ...defaults,
    ...pick({ ...defaults, ...input }, 'overlap', 'missed', 'missedWithinSeconds', 'jitterSeconds'),
    name: input.name,
    cron: input.cron ?? null,
    everySeconds: input.everySeconds ?? null,
    at: utc(input.at),
    timezone: input.timezone ?? 'UTC',
    from,
    until: utc(input.until),
    base: from ?? at,
    scriptId: input.scriptId ?? null,
    script: input.script ?? null,
    copy: input.copy ?? null,
    target: input.target,
    options: { ...Object.fromEntries(given), params: input.params ?? {} },
    enabled: input.enabled ?? true,
  }
}

const kinds = ['cron', 'everySeconds', 'at'] as const
const actions = ['scriptId', 'script', 'copy'] as const
const timings = [...kinds, 'timezone', 'from', 'until', 'jitterSeconds'] as const

/** Fields after a patch. A changed timing starts again at `at`. */
export function saidAfter(previous: ScheduleRecord, patch: SchedulePatch, at: string): Said {
  const isTimed = kinds.some((kind) => patch[kind] !== undefined)
  const acts = actions.some((action) => patch[action] !== undefined)
  const from = patch.from === undefined ? previous.from : utc(patch.from)
  const timing = {
    cron: isTimed ? (patch.cron ?? null) : previous.cron,
    everySeconds: isTimed ? (patch.everySeconds ?? null) : previous.everySeconds,
    at: isTimed ? utc(patch.at) : previous.at,
    timezone: patched(patch.timezone, previous.timezone, 'UTC'),
    from,
    until: patch.until === undefined ? previous.until : utc(patch.until),
    jitterSeconds: patched(patch.jitterSeconds, previous.jitterSeconds, defaults.jitterSeconds),
  }
  const isSame = isDeepStrictEqual(timing, pick(previous, ...timings))
  return {
    name: patch.name ?? previous.name,
    ...timing,
    base: isSame ? previous.base : (from ?? at),
    scriptId: acts ? (patch.scriptId ?? null) : previous.scriptId,
    script: acts ? (patch.script ?? null) : previous.script,
    copy: acts ? (patch.copy ?? null) : previous.copy,
    target: patch.target ?? previous.target,
    options: optionsAfter(previous.options, patch),
    enabled: patch.enabled ?? previous.enabled,
    overlap: patched(patch.overlap, previous.overlap, defaults.overlap),
    missed: patched(patch.missed, previous.missed, defaults.missed),
    missedWithinSeconds: patched(
      patch.missedWithinSeconds,
      previous.missedWithinSeconds,
      defaults.missedWithinSeconds,
    ),
  }
}

function optionsAfter(previous: Said['options'], patch: SchedulePatch): Said['options'] {
  const options: Record<string, unknown> = { ...previous }
  for (const name of optionNames) {
    const value = patch[name]
    if (value === null) delete options[name]
    else if (value !== undefined) options[name] = value
  }
  return { ...options, params: patchedMap(patch.params, previous.params ?? {}) }
}

export const isRescheduled = (previous: Timing, next: Timing): boolean =>
  !isDeepStrictEqual(pick(previous, ...timings), pick(next, ...timings))

/** Whether a change affects what runs, where or how: then the user who made it becomes the owner (contract §14). */
export function runsOther(previous: Said, next: Said): boolean {
  const acts = (said: Said) => pick(said, ...actions, 'target', 'options')
  return !isDeepStrictEqual(acts(previous), acts(next))
}

/** When the schedule is evaluated next; null if it is disabled, suspended or has no further slot. */
export function dueAtOf(
  record: Pick<ScheduleRecord, 'id' | 'enabled' | 'suspended' | 'cursor' | 'queued'>,
  slots: Slots,
): string | null {
  if (!record.enabled || record.suspended !== null) return null
  const slot = record.queued === null ? slots.next(Date.parse(record.cursor)) : Date.parse(record.queued)
  return slot === null ? null : isoTime(slots.dueAt(record.id, slot))
}

/** `last`: the task of its last run, if it still exists. */
export function scheduleToApi(record: ScheduleRecord, last: TaskRecord | undefined): Schedule {
  const { options, lastRun, enabled, suspended, cursor } = record
  const { params = {}, ...given } = options
  const status = lastRun?.taskId === null ? 'FAILED' : last?.status
  return {
    ...pick(record, 'id', 'name', ...timings, ...actions, 'target'),
    params,
    secretParams: record.secretParamNames,
    ...given,
    ...pick(record, 'enabled', 'overlap', 'missed', 'missedWithinSeconds'),
    nextAt: isoOrNull(
      enabled && suspended === null ? (slotsIfKnown(record)?.next(Date.parse(cursor)) ?? null) : null,
    ),
    lastTask: lastRun && status ? { ...lastRun, status } : null,
    ...pick(record, 'suspended', 'owner', 'createdAt', 'updatedAt'),
  }
}

const textless = ({ content, ...script }: AdHocScript) => ({
  ...script,
  firstLine: firstLine(content),
  bytes: Buffer.byteLength(content),
})

const textlessGate = <G extends GateOption>({ script, ...gate }: G) => ({
  ...gate,
  ...(script && { script: textless(script) }),
})

export function withoutTexts({
  params: _params,
  script,
  verify,
  rollback,
  ...rest
}: Schedule): ScheduleSummary {
  return {
    ...rest,
    script: script && textless(script),
    ...(verify && { verify: textlessGate(verify) }),
    ...(rollback && { rollback: textlessGate(rollback) }),
  }
}

const isoOrNull = (time: number | null) => (time === null ? null : isoTime(time))

export function slotToApi(slot: SlotRecord): ScheduleSlot {
  return pick(slot, 'plannedAt', 'firstAt', 'count', 'at', 'outcome', 'why', 'error', 'taskId', 'by')
}
