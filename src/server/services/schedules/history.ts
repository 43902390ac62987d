import type { Skip } from '../../../core/schedules/decide.ts'
import { isoTime } from '../../../disk/clock.ts'
import type { Transaction } from '../../storage/ports/store.ts'
import type { ScheduleRecord, SlotRecord } from '../../storage/records/schedule.ts'
import type { Context } from '../context.ts'

/** Entries that are kept of a schedule: the newest. */
const maxSlots = 100
/** Those that may be over, after a schedule has written several at once. */
const trimmedAtOnce = 10

export const slotId = (scheduleId: number, plannedAt: string): string => `${scheduleId}/${plannedAt}`

const blank = { by: null, taskId: null, why: null, error: null } as const

/** Of a slot that was run. */
export function ranSlot(
  { id: scheduleId }: Pick<ScheduleRecord, 'id'>,
  plannedAt: string,
  at: string,
  end: { taskId: string } | { error: string },
): SlotRecord {
  const outcome = 'taskId' in end ? 'STARTED' : 'FAILED'
  const slot = { id: slotId(scheduleId, plannedAt), scheduleId, plannedAt, firstAt: plannedAt, count: 1, at }
  return { ...slot, ...blank, outcome, ...end }
}

/** Of what a user ran by hand; the task's id keeps it apart from a slot of that moment. */
export function ranByHand(scheduleId: number, at: string, by: string, taskId: string): SlotRecord {
  const slot = { scheduleId, plannedAt: at, firstAt: at, count: 1, at }
  return { ...slot, ...blank, id: `${slotId(scheduleId, at)}/${taskId}`, outcome: 'STARTED', by, taskId }
}

/** Of slots that were skipped together. */
export function skippedSlot(scheduleId: number, { first, last, count, why }: Skip, at: string): SlotRecord {
  const plannedAt = isoTime(last)
  // What a jump of the clock has skipped may still run, once the clock is right again.
  const id = slotId(scheduleId, plannedAt)
  const slot = {
    id: why === 'CLOCK' ? `${id}/CLOCK` : id,
    scheduleId,
    plannedAt,
    firstAt: isoTime(first),
    count,
    at,
  }
  return { ...slot, ...blank, outcome: 'SKIPPED', why }
}

/** Writes down what became of slots, and lets go of the oldest. */
export async function putSlots(
  tx: Transaction,
  scheduleId: number,
  slots: readonly SlotRecord[],
): Promise<void> {
  for (const slot of slots) tx.put('slots', slot)
  if (slots.length === 0) return
  const where = { equals: { scheduleId } }
  const past = { where, order: 'desc', offset: maxSlots, limit: trimmedAtOnce } as const
  for (const { id } of (await tx.query('slots', past)).items) tx.remove('slots', id)
}

/** As `putSlots`, and an event of those that were not run: never with a text that may quote a param. */
export async function putSlotsWithEvents(
  tx: Transaction,
  { webhookEvents }: Pick<Context, 'webhookEvents'>,
  schedule: ScheduleRecord,
  slots: readonly SlotRecord[],
): Promise<void> {
  const { id: scheduleId, name, owner } = schedule
  await putSlots(tx, scheduleId, slots)
  for (const { outcome, why, firstAt, plannedAt, count } of slots)
    if (outcome !== 'STARTED') {
      const data = { scheduleId, name, owner, why: why ?? outcome, firstAt, plannedAt, count }
      webhookEvents.write(tx, 'schedule.skipped', data, { schedule })
    }
}

/** What was written of slots, to the audit log and the metrics. */
export function publishSlots(
  { facts, clock }: Pick<Context, 'facts' | 'clock'>,
  schedule: ScheduleRecord,
  slots: readonly SlotRecord[],
): void {
  for (const slot of slots) {
    const late = slot.outcome === 'SKIPPED' ? null : clock.now() - Date.parse(slot.plannedAt)
    facts.publish('slot', { schedule, slot, late })
  }
}

/**
 * The last slot that ran, before which no other may run again; where the entries that are kept tell of none, the oldest of
 * them is after it. Milliseconds since 1970.
 */
export async function lastRanAt(tx: Transaction, scheduleId: number): Promise<number> {
  const { items } = await tx.query('slots', { where: { equals: { scheduleId } }, order: 'desc' })
  const ran = items.find(({ outcome, by }) => outcome !== 'SKIPPED' && by === null)
  const last = ran ?? (items.length < maxSlots ? undefined : items.at(-1))
  return last === undefined ? 0 : Date.parse(last.plannedAt)
}
