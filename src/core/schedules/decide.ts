import type { SlotRange, Slots } from './timing.ts'

export const overlaps = ['SKIP', 'QUEUE', 'ALLOW'] as const
/** Rule for a slot that is due while a task of the schedule runs. */
export type Overlap = (typeof overlaps)[number]

export const missedRules = ['SKIP', 'ONCE'] as const
/** Rule for slots missed because no server was running. */
export type Missed = (typeof missedRules)[number]

export const slotOutcomes = ['STARTED', 'FAILED', 'SKIPPED'] as const
export type SlotOutcome = (typeof slotOutcomes)[number]

export const skipReasons = [
  'MISSED',
  'OVERLAP',
  'PAUSED',
  'CHANGED',
  'SUSPENDED',
  'RESTORED',
  'CLOCK',
] as const
export type SkipReason = (typeof skipReasons)[number]

/** Milliseconds by which a slot can be late without counting as missed: another server takes over within this. */
export const onTimeWithin = 60_000

/** Times in milliseconds since 1970. */
export interface Present {
  readonly scheduleId: number
  readonly slots: Slots
  readonly overlap: Overlap
  readonly missed: Missed
  readonly missedWithinSeconds: number
  /** All slots up to here are handled. */
  readonly cursor: number
  /** Slot that waits for the end of a task, with QUEUE. */
  readonly queued: number | null
  /** Slots up to here may have run already, in the period that a restore from a backup lost. */
  readonly restoredAt: number | null
  /** Slots up to here were reached by a jump of the clock; null: by the passing of time. */
  readonly jumpedTo: number | null
  readonly isRunning: boolean
  readonly now: number
}

export interface Skip extends SlotRange {
  readonly why: SkipReason
}

/** Changes to make now, in one transaction. */
export interface Decision {
  readonly run: number | null
  readonly skip: readonly Skip[]
  readonly cursor: number
  readonly queued: number | null
  /** When to decide again; null: never, because no slots remain. */
  readonly dueAt: number | null
}

const one = (slot: number): SlotRange => ({ first: slot, last: slot, count: 1 })

/** Due slots, without the last one if jitter still delays it. */
function dueNow({ slots, scheduleId, cursor, now }: Present): SlotRange | null {
  const passed = slots.within(cursor, now)
  if (passed === null || slots.dueAt(scheduleId, passed.last) <= now) return passed
  return slots.within(cursor, passed.last - 1)
}

/** Only the newest due slot may run: each earlier one was missed, because its successor is due. */
function splitNewest(due: SlotRange, slots: Slots): { newest: number; before: SlotRange | null } {
  if (due.first === due.last) return { newest: due.last, before: null }
  const before = due.count === 2 ? one(due.first) : slots.within(due.first - 1, due.last - 1)
  return { newest: due.last, before }
}

function mayRun({ scheduleId, slots, missed, missedWithinSeconds, now }: Present, slot: number): boolean {
  const late = now - slots.dueAt(scheduleId, slot)
  return late <= onTimeWithin || (missed === 'ONCE' && late <= missedWithinSeconds * 1000)
}

/** Runs, queues or skips each due slot of a schedule (contract §14); at most one runs. */
export function decide(present: Present): Decision {
  const { scheduleId, slots, overlap, restoredAt, jumpedTo, isRunning, now } = present
  const skip: Skip[] = []
  let { queued, cursor } = present
  let run: number | null = null
  const isBeforeRestore = (slot: number) => restoredAt !== null && slot <= restoredAt
  if (queued !== null && isBeforeRestore(queued)) {
    skip.push({ ...one(queued), why: 'RESTORED' })
    queued = null
  } else if (queued !== null && !isRunning) {
    run = queued
    queued = null
  }
  const leapt = jumpedTo === null ? null : slots.within(cursor, Math.min(jumpedTo, now))
  if (leapt !== null) {
    skip.push({ ...leapt, why: 'CLOCK' })
    cursor = leapt.last
  }
  const due = dueNow({ ...present, cursor })
  if (due !== null) {
    cursor = due.last
    const { newest, before } = splitNewest(due, slots)
    const isRestored = isBeforeRestore(newest)
    const why = isRestored ? 'RESTORED' : 'MISSED'
    if (before !== null) skip.push({ ...before, why })
    const isBusy = overlap !== 'ALLOW' && (isRunning || run !== null)
    if (isRestored || !mayRun(present, newest)) skip.push({ ...one(newest), why })
    else if (!isBusy && run === null) run = newest
    else if ((overlap === 'QUEUE' || !isBusy) && queued === null) queued = newest
    else skip.push({ ...one(newest), why: 'OVERLAP' })
  }
  const next = slots.next(cursor)
  const nextDue = next === null ? null : slots.dueAt(scheduleId, next)
  return { run, skip, cursor, queued, dueAt: queued === null ? nextDue : slots.dueAt(scheduleId, queued) }
}
