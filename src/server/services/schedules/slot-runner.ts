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
import type { ClockReading } from './jumps.ts'
import { dueAtOf } from './record.ts'
import { whySuspended } from './standing.ts'
import { taskOf } from './task-of.ts'

/** What came of a look at a schedule: nothing yet (WAITS), another one was first (CHANGED), or it is done. */
export type SlotResult = 'WAITS' | 'CHANGED' | 'DONE'

/** What a look is made in; `restoredAt`: the end of the last restore from a backup. */
interface PollTime extends ClockReading {
  readonly restoredAt: number | null
}

type Ran = { taskId: string } | { error: string }
type Refused = { refused: 'changed' | 'taken' } | { refused: 'suspended'; why: string }

const unreadable = 'this server does not know its time zone: give it another one'

const timeOf = (text: string | null) => (text === null ? null : Date.parse(text))

/** Whether it is still the one that was decided on. */
const isSame = (one: ScheduleRecord, other: ScheduleRecord | undefined): other is ScheduleRecord =>
  other !== undefined &&
  one.revision === other.revision &&
  one.cursor === other.cursor &&
  one.queued === other.queued

/**
 * Carries out what is due of one schedule: each slot is run or skipped in one transaction with the cursor that says so, so that
 * none is run twice, whatever ends this process, and however many servers look (contract §14).
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

  /** Writes what was decided, unless the schedule or its standing is another one by now. */
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
    // A clock that was set back: this one was run when it came first.
    if (slot !== null && (await tx.get('slots', slot)) !== undefined) return { refused: 'taken' }
    tx.put('schedules', after(schedule, decision, ran, at))
    await putSlotsWithEvents(tx, context, schedule, slotsWritten(schedule, decision, ran, at))
    return null
  }

  /** Ends it until somebody takes it over; what was due is skipped. */
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

  /** What the slot runs, or why nothing can be made of it; throws what waiting may mend. */
  async function prepared(schedule: ScheduleRecord): Promise<NewTask | { error: string }> {
    try {
      const task = await taskOf(context, schedule)
      await demandRunningRoom(context, schedule.owner, task).catch((cause: Error) => {
        // Tasks of others must not fail a slot: it waits for room.
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
      // By the name that the owner has now, by which tasks are found.
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
    /** Looks at a schedule that is due. Rejects with what waiting may mend; nothing is written then. */
    async poll(schedule: ScheduleRecord, present: PollTime): Promise<SlotResult> {
      const slots = slotsIfKnown(schedule)
      if (slots === null) return suspend(schedule, null, unreadable)
      const decision = await decideNow(schedule, slots, present)
      const dueAt = decision.dueAt === null ? null : isoTime(decision.dueAt)
      const hasNews = decision.run !== null || decision.skip.length > 0
      if (!hasNews && isoTime(decision.cursor) === schedule.cursor && dueAt === schedule.dueAt) return 'WAITS'
      return carryOut(schedule, decision)
    },
    /** Suspends it where its owner or its token has lost the right to it since. */
    async judge(schedule: ScheduleRecord): Promise<void> {
      if (schedule.suspended !== null) return
      const why = await whySuspended(store, schedule, clock.now())
      if (why !== null) await suspend(schedule, null, why)
    },
    /** After the clock was set back to `now`: what has not run comes again. */
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
