import type { Skip } from '../../../core/schedules/decide.ts'
import { isoTime } from '../../../disk/clock.ts'
import type { Transaction } from '../../storage/ports/store.ts'
import type { ScheduleRecord, SlotRecord } from '../../storage/records/schedule.ts'
import type { Context } from '../context.ts'

/** Slots kept per schedule; the oldest are removed. */
const maxSlots = 100
/** Slots removed per write, because a schedule may write several at once. */
const trimmedAtOnce = 10

export const slotId = (scheduleId: number, plannedAt: string): string => `${scheduleId}/${plannedAt}`

const blank = { by: null, taskId: null, why: null, error: null } as const

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

/** A manual run; the task's id distinguishes it from a slot at the same time. */
export function ranByHand(scheduleId: number, at: string, by: string, taskId: string): SlotRecord {
  const slot = { scheduleId, plannedAt: at, firstAt: at, count: 1, at }
  return { ...slot, ...blank, id: `${slotId(scheduleId, at)}/${taskId}`, outcome: 'STARTED', by, taskId }
}

export function skippedSlot(scheduleId: number, { first, last, count, why }: Skip, at: string): SlotRecord {
  const plannedAt = isoTime(last)
  // A slot skipped by a clock jump may still run once the clock is correct again.
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

/** Stores slots and removes the oldest. */
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

/** Like `putSlots`, plus a webhook event for each slot that did not run, without texts that may quote a param. */
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
 * Time of the last slot that ran; no slot before it may run again. If a full history contains only skipped slots, the
 * oldest of them counts, because an older one may have run. Milliseconds since 1970; 0 if none ran.
 */
export async function lastRanAt(tx: Transaction, scheduleId: number): Promise<number> {
  const { items } = await tx.query('slots', { where: { equals: { scheduleId } }, order: 'desc' })
  const ran = items.find(({ outcome, by }) => outcome !== 'SKIPPED' && by === null)
  const last = ran ?? (items.length < maxSlots ? undefined : items.at(-1))
  return last === undefined ? 0 : Date.parse(last.plannedAt)
}
