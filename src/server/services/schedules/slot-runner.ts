import { mendable, RsmError } from '../../../core/errors.ts'
import { type Decision, decide } from '../../../core/schedules/decide.ts'
import { type Slots, slotsIfKnown } from '../../../core/schedules/timing.ts'
import { isoTime } from '../../../disk/clock.ts'
import type { Transaction } from '../../storage/ports/store.ts'
import type { ScheduleRecord } from '../../storage/records/schedule.ts'
import type { Context } from '../context.ts'
import { createStart, type NewTask } from '../tasks/start-task.ts'
import { demandRunningRoom } from '../text-quota.ts'
import { lastRanAt, publishSlots, putSlotsWithEvents, ranSlot, skippedSlot, slotId } from './history.ts'
import { dueAtOf } from './record.ts'
import { whySuspended } from './rights.ts'
import { taskOf } from './task-of.ts'

/** Result of evaluating a schedule: nothing to do yet (WAITS), changed meanwhile elsewhere (CHANGED), or carried out (DONE). */
export type SlotResult = 'WAITS' | 'CHANGED' | 'DONE'

/** Clock reading of a running server; times in milliseconds since 1970. */
export interface ClockReading {
  readonly now: number
  /** Slots up to here became due by a clock jump; null if only by the passing of time. */
  readonly jumpedTo: number | null
}

/** Time of an evaluation; `restoredAt`: when the last restore from a backup was confirmed. */
interface PollTime extends ClockReading {
  readonly restoredAt: number | null
}

type Ran = { taskId: string } | { error: string }
type Refused = { refused: 'changed' | 'taken' } | { refused: 'suspended'; why: string }

const unreadable = 'this server does not know its time zone: set another one'

const timeOf = (text: string | null) => (text === null ? null : Date.parse(text))

const isSame = (one: ScheduleRecord, other: ScheduleRecord | undefined): other is ScheduleRecord =>
  other !== undefined &&
  one.revision === other.revision &&
  one.cursor === other.cursor &&
  one.queued === other.queued

/**
 * Carries out the due slots of one schedule. Each slot is run or skipped in one transaction with the cursor. So no slot
 * runs twice, even after a crash or with several servers (contract §14).
 */
export function createSlotRunner(context: Context) {
  const { store, clock, facts, webhookEvents } = context
  const { startPlanned } = createStart(context)

  async function isRunning({ id, overlap, queued }: ScheduleRecord): Promise<boolean> {
    if (overlap === 'ALLOW' && queued === null) return false
    const where = { equals: { scheduleId: id, status: 'RUNNING' } } as const
    return (await store.query('tasks', { where, limit: 1 })).total > 0
  }

  async function decideNow(schedule: ScheduleRecord, slots: Slots, present: PollTime) {
    const { id: scheduleId, overlap, missed, missedWithinSeconds, cursor, queued } = schedule
    return decide({
      scheduleId,
      slots,
      overlap,
      missed,
      missedWithinSeconds,
      cursor: Date.parse(cursor),
      queued: timeOf(queued),
      ...present,
      isRunning: await isRunning(schedule),
    })
  }

  function after(schedule: ScheduleRecord, decision: Decision, ran: Ran | null, at: string): ScheduleRecord {
    const cursor = isoTime(decision.cursor)
    const queued = decision.queued === null ? null : isoTime(decision.queued)
    const dueAt = decision.dueAt === null ? null : isoTime(decision.dueAt)
    const lastRun = ran ? { taskId: 'taskId' in ran ? ran.taskId : null, at } : schedule.lastRun
    return { ...schedule, cursor, queued, dueAt, lastRun }
  }

  function slotsWritten(schedule: ScheduleRecord, decision: Decision, ran: Ran | null, at: string) {
    const written = decision.skip.map((skip) => skippedSlot(schedule.id, skip, at))
    if (decision.run !== null && ran) written.push(ranSlot(schedule, isoTime(decision.run), at, ran))
    return written
  }

  async function write(
    tx: Transaction,
    schedule: ScheduleRecord,
    decision: Decision,
    ran: Ran | null,
    at: string,
  ): Promise<Refused | null> {
    if (!isSame(schedule, await tx.get('schedules', schedule.id))) return { refused: 'changed' }
    const why = await whySuspended(tx, schedule, clock.now())
    if (why !== null) return { refused: 'suspended', why }
    const slot = decision.run === null ? null : slotId(schedule.id, isoTime(decision.run))
    // The slot already ran before the clock was set back.
    if (slot !== null && (await tx.get('slots', slot)) !== undefined) return { refused: 'taken' }
    tx.put('schedules', after(schedule, decision, ran, at))
    await putSlotsWithEvents(tx, context, schedule, slotsWritten(schedule, decision, ran, at))
    return null
  }

  /** Suspends a schedule until a user takes it over; due slots are skipped. */
  async function suspend(
    schedule: ScheduleRecord,
    decision: Decision | null,
    why: string,
  ): Promise<SlotResult> {
    const at = context.time()
    const cut = decision === null ? [timeOf(schedule.queued)] : [decision.run, decision.queued]
    const skips = [...(decision?.skip ?? [])]
    for (const slot of cut)
      if (slot !== null) skips.push({ first: slot, last: slot, count: 1, why: 'SUSPENDED' })
    const decided = decision?.cursor ?? Date.parse(schedule.cursor)
    const passed = schedule.enabled ? slotsIfKnown(schedule)?.within(decided, Date.parse(at)) : null
    if (passed) skips.push({ ...passed, why: 'SUSPENDED' })
    const slots = skips.map((skip) => skippedSlot(schedule.id, skip, at))
    const cursor = isoTime(passed?.last ?? decided)
    const revision = schedule.revision + 1
    const next = { ...schedule, cursor, revision, suspended: why, queued: null, dueAt: null }
    const isDone = await store.transact(async (tx) => {
      if (!isSame(schedule, await tx.get('schedules', schedule.id))) return false
      tx.put('schedules', next)
      await putSlotsWithEvents(tx, context, schedule, slots)
      const { id: scheduleId, name, owner } = schedule
      const data = { scheduleId, name, owner, why }
      webhookEvents.write(tx, 'schedule.suspended', data, { schedule })
      return true
    })
    if (!isDone) return 'CHANGED'
    publishSlots(context, next, slots)
    facts.publish('scheduleSuspended', { schedule: next, why })
    return 'DONE'
  }

  /** Builds the task of a slot, or the error that fails it. Rejects with errors that a retry may fix. */
  async function prepared(schedule: ScheduleRecord): Promise<NewTask | { error: string }> {
    try {
      const task = await taskOf(context, schedule)
      await demandRunningRoom(context, schedule.owner, task).catch((cause: Error) => {
        // Other tasks must not fail a slot: it waits for room.
        throw new RsmError('unavailable', cause.message, { cause, retryAfter: 30 })
      })
      return task
    } catch (error) {
      if (!(error instanceof RsmError) || mendable(error)) throw error
      return { error: error.message.replace(/^Validation failed: /, '') }
    }
  }

  async function carryOut(schedule: ScheduleRecord, decision: Decision): Promise<SlotResult> {
    const at = context.time()
    const { run } = decision
    const slot = run === null ? null : isoTime(run)
    const task = slot === null ? null : await prepared(schedule)
    let ran: Ran | null = task && 'error' in task ? task : null
    let refused: Refused | null
    if (slot === null || task === null || 'error' in task)
      refused = await store.transact((tx) => write(tx, schedule, decision, ran, at))
    else {
      // Use the owner's current name, because tasks are searched by it.
      const user = await store.get('users', schedule.ownerId)
      const owner = { id: schedule.ownerId, username: user?.username ?? schedule.owner }
      const origin = { schedule, plannedAt: slot }
      const started = await startPlanned(owner, task, origin, (tx, { id: taskId }) =>
        write(tx, schedule, decision, { taskId }, at),
      )
      refused = started.other
      ran = { taskId: started.record.id }
    }
    if (refused?.refused === 'suspended') return suspend(schedule, decision, refused.why)
    if (refused?.refused === 'taken') return carryOut(schedule, { ...decision, run: null })
    if (refused) return 'CHANGED'
    publishSlots(context, schedule, slotsWritten(schedule, decision, ran, at))
    return 'DONE'
  }

  return {
    /** Evaluates a due schedule. Rejects, without writing, with errors that a retry may fix. */
    async poll(schedule: ScheduleRecord, present: PollTime): Promise<SlotResult> {
      const slots = slotsIfKnown(schedule)
      if (slots === null) return suspend(schedule, null, unreadable)
      const decision = await decideNow(schedule, slots, present)
      const dueAt = decision.dueAt === null ? null : isoTime(decision.dueAt)
      const hasNews = decision.run !== null || decision.skip.length > 0
      if (!hasNews && isoTime(decision.cursor) === schedule.cursor && dueAt === schedule.dueAt) return 'WAITS'
      return carryOut(schedule, decision)
    },
    /** Suspends a schedule if its owner or token lost the necessary rights. */
    async judge(schedule: ScheduleRecord): Promise<void> {
      if (schedule.suspended !== null) return
      const why = await whySuspended(store, schedule, clock.now())
      if (why !== null) await suspend(schedule, null, why)
    },
    /** After the clock was set back to `now`: slots that have not run become due again. */
    async rewind({ id }: ScheduleRecord, now: number): Promise<void> {
      await store.transact(async (tx) => {
        const schedule = await tx.get('schedules', id)
        const slots = schedule && slotsIfKnown(schedule)
        if (!schedule || !slots || Date.parse(schedule.cursor) <= now) return
        const cursor = isoTime(Math.max(now, await lastRanAt(tx, id)))
        if (cursor >= schedule.cursor) return
        const next = { ...schedule, cursor }
        tx.put('schedules', { ...next, dueAt: dueAtOf(next, slots) })
      })
    },
  }
}
