import { type FieldFault, invalid, RsmError } from '../../core/errors.ts'
import type { Schedule, SchedulePatch, ScheduleSummary } from '../../core/protocol/http/schedules.ts'
import { type SlotRange, slotsIfKnown, slotsOf, timingFaults } from '../../core/schedules/timing.ts'
import type { ScheduleService } from '../../core/services.ts'
import { isoTime } from '../../disk/clock.ts'
import { stillAllowed } from '../access/credentials.ts'
import { storePage } from '../storage/paging.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import type { ScheduleRecord, SlotRecord } from '../storage/records/schedule.ts'
import { type Context, type ForCallers, notFound, patchedMap } from './context.ts'
import { publishSlots, putSlots, putSlotsWithEvents, ranByHand, skippedSlot } from './schedules/history.ts'
import {
  dueAtOf,
  isRescheduled,
  runsOther,
  type Said,
  saidAfter,
  saidBy,
  scheduleToApi,
  slotToApi,
  withoutTexts,
} from './schedules/record.ts'
import { boundScripts, confirms, demandSecretsOf, demandWriter, ownedBy } from './schedules/rights.ts'
import {
  checkedOrder,
  demandFileOf,
  openSecrets,
  type Secrets,
  sealSecrets,
  taskOf,
} from './schedules/task-of.ts'
import { resolveTarget } from './targets.ts'
import { createStart } from './tasks/start-task.ts'
import type { Starter } from './tasks.ts'
import { demandRunningRoom, demandStoredRoom } from './text-quota.ts'

/** Limits the work of a planner's pass. */
const maxSchedules = 10_000
const defaultCount = 5

async function faultsOf(work: () => Promise<unknown>): Promise<readonly FieldFault[]> {
  try {
    await work()
    return []
  } catch (error) {
    if (error instanceof RsmError && error.code === 'invalid') return error.fields
    throw error
  }
}

/** Slots that a change skips: the queued one and, if the schedule restarts or `ends`, those that are due. */
function droppedSlots(current: ScheduleRecord, next: ScheduleRecord, ends: boolean): SlotRecord[] {
  const why = next.enabled ? 'CHANGED' : 'PAUSED'
  const queued = current.queued !== null && next.queued === null ? Date.parse(current.queued) : null
  const ranges: SlotRange[] = queued === null ? [] : [{ first: queued, last: queued, count: 1 }]
  const slots = ends && current.enabled && current.suspended === null ? slotsIfKnown(current) : null
  const passed = slots?.within(Date.parse(current.cursor), Date.parse(next.updatedAt))
  if (passed) ranges.push(passed)
  return ranges.map((range) => skippedSlot(next.id, { ...range, why }, next.updatedAt))
}

/** Schedules (contract §14); schedules/planner.ts runs them. */
export function createSchedules(context: Context): ForCallers<ScheduleService, Starter> {
  const { store, clock } = context
  const { startPlanned } = createStart(context)

  async function toApi(record: ScheduleRecord): Promise<Schedule> {
    const { lastRun } = record
    return scheduleToApi(record, lastRun?.taskId ? await store.get('tasks', lastRun.taskId) : undefined)
  }

  async function get(id: number): Promise<ScheduleRecord> {
    const record = await store.get('schedules', id)
    if (!record) throw notFound('schedule', id)
    return record
  }

  /** Throws `invalid` with all faults; a target may be empty. `secretParams` null: the order is unchanged. */
  async function check(
    said: Said & Pick<ScheduleRecord, 'ownerId'>,
    secretParams: Secrets | null,
    isTimed: boolean,
  ): Promise<void> {
    const faults: FieldFault[] = isTimed ? timingFaults(said, clock.now()) : []
    if (secretParams !== null) faults.push(...(await runFaults(said, secretParams)))
    if (faults.length > 0) throw invalid(faults)
  }

  async function runFaults(
    said: Said & Pick<ScheduleRecord, 'ownerId'>,
    secretParams: Secrets,
  ): Promise<FieldFault[]> {
    const { scriptId, script, copy, target, ownerId } = said
    const faults: FieldFault[] = []
    if ([scriptId, script, copy].filter((action) => action !== null).length !== 1)
      faults.push({ field: 'scriptId', message: 'give exactly one of scriptId, script and copy' })
    else {
      const isSecret = Object.keys(secretParams).length > 0
      const options = { ...said.options, ...(isSecret && { secretParams: { ...secretParams } }) }
      faults.push(...(await faultsOf(() => checkedOrder(context, said, options, ownerId))))
    }
    faults.push(...(await faultsOf(() => resolveTarget(context, target, 'target'))))
    return faults
  }

  /** Empty if the server has another key now: then they must be given again. */
  function secretsOf(record: ScheduleRecord): Secrets {
    try {
      return openSecrets(context, record)
    } catch (error) {
      if (error instanceof RsmError && error.code === 'gone') return {}
      throw error
    }
  }

  /** Applies a patch; `secrets` are those to check with the order again, or null if it is unchanged. */
  function afterPatch(
    caller: UserCaller,
    previous: ScheduleRecord,
    patch: SchedulePatch,
  ): { next: ScheduleRecord; secrets: Secrets | null; isTimed: boolean } {
    const at = context.time()
    const said = saidAfter(previous, patch, at)
    const lifts = previous.suspended !== null && patch.enabled === true
    const takesOver = lifts || patch.secretParams !== undefined || runsOther(previous, said)
    const isOthers = takesOver && previous.ownerId !== caller.id
    const kept = isOthers ? {} : secretsOf(previous)
    const secrets = takesOver ? patchedMap(patch.secretParams, { ...kept }) : null
    const isConfirmed = isOthers || confirms(patch, Object.keys(secrets ?? {}))
    const isTimed = isRescheduled(previous, said)
    const begins = isTimed || lifts || (said.enabled && !previous.enabled)
    const next: ScheduleRecord = {
      ...previous,
      ...said,
      ...(takesOver && ownedBy(caller)),
      ...(takesOver && sealSecrets(context, previous.id, secrets ?? {})),
      secretsFor: isConfirmed ? {} : (previous.secretsFor ?? {}),
      suspended: takesOver ? null : previous.suspended,
      cursor: begins || (takesOver && previous.suspended !== null) ? at : previous.cursor,
      queued: begins || !said.enabled ? null : previous.queued,
      revision: previous.revision + 1,
      updatedAt: at,
    }
    return { next, secrets, isTimed }
  }

  /** Resolves with null if the schedule changed since it was read. */
  async function write(
    caller: UserCaller,
    previous: ScheduleRecord,
    given: ScheduleRecord,
  ): Promise<ScheduleRecord | null> {
    const written = await store.transact(async (tx) => {
      const secretsFor = await boundScripts(tx, given, given.secretsFor)
      if (runsOther(previous, given)) await demandFileOf(tx, given)
      const current = await tx.get('schedules', previous.id)
      if (!current) throw notFound('schedule', previous.id)
      await demandWriter(tx, caller, current)
      if (current.revision !== previous.revision) return null
      const isRestarted = given.cursor !== previous.cursor
      const cursor = isRestarted ? given.cursor : current.cursor
      // A slot may have been queued or run since the read.
      const queued = isRestarted || !given.enabled ? null : current.queued
      const { lastRun } = current
      const next = { ...given, secretsFor, cursor, queued, lastRun }
      const stored = { ...next, dueAt: dueAtOf(next, slotsOf(next)) }
      tx.put('schedules', stored)
      const slots = droppedSlots(current, stored, isRestarted || !stored.enabled)
      await putSlotsWithEvents(tx, context, stored, slots)
      return { stored, slots }
    })
    if (written === null) return null
    publishSlots(context, written.stored, written.slots)
    return written.stored
  }

  return {
    async list(_, query) {
      const where = {
        equals: { name: query.name?.toLowerCase() },
        contains: { fields: ['name'], text: query.search },
      } as const
      return storePage<'schedules', ScheduleSummary>(store, 'schedules', query, { where }, async (items) => {
        const dtos = await Promise.all(items.map(toApi))
        return query.name === undefined ? dtos.map(withoutTexts) : dtos
      })
    },
    get: async (_, id) => toApi(await get(id)),
    async create(caller, input) {
      const at = context.time()
      const said = saidBy(input, at)
      const { secretParams = {} } = input
      await check({ ...said, ownerId: caller.id }, secretParams, true)
      if ((await store.query('schedules', { limit: 0 })).total >= maxSchedules)
        throw new RsmError('conflict', `Limit of ${maxSchedules} schedules reached; remove some first`)
      await demandStoredRoom(context, { author: caller.username, record: input })
      const record = await store.transact(async (tx) => {
        await stillAllowed(tx, caller, 'execute')
        const id = await tx.nextId('schedules')
        const blank = { suspended: null, queued: null, dueAt: null, lastRun: null, revision: 0 }
        const secrets = {
          ...sealSecrets(context, id, secretParams),
          secretsFor: await boundScripts(tx, said),
        }
        const made = { ...said, ...ownedBy(caller), ...secrets, ...blank }
        const created: ScheduleRecord = { id, ...made, cursor: at, createdAt: at, updatedAt: at }
        const stored = { ...created, dueAt: dueAtOf(created, slotsOf(created)) }
        await demandFileOf(tx, stored)
        tx.put('schedules', stored)
        return stored
      })
      return toApi(record)
    },
    async update(caller, id, patch) {
      for (;;) {
        const previous = await get(id)
        // Before its secrets are opened and checked.
        await demandWriter(store, caller, previous)
        const { next, secrets, isTimed } = afterPatch(caller, previous, patch)
        await check(next, secrets, isTimed)
        const written = { author: next.owner, record: next }
        await demandStoredRoom(context, written, { author: previous.owner, record: previous })
        const stored = await write(caller, previous, next)
        if (stored) return toApi(stored)
      }
    },
    async remove(caller, id) {
      await store.transact(async (tx) => {
        const record = await tx.get('schedules', id)
        if (!record) throw notFound('schedule', id)
        await demandWriter(tx, caller, record)
        tx.remove('schedules', id)
        for (const slot of await tx.find('slots', 'scheduleId', id)) tx.remove('slots', slot.id)
      })
      return { id }
    },
    async run(caller, id) {
      const schedule = await get(id)
      if (schedule.secretParams !== null) demandSecretsOf(caller, schedule)
      const task = await taskOf(context, schedule)
      if (task.hasSecretFile) demandSecretsOf(caller, schedule)
      await demandRunningRoom(context, caller.username, task)
      const origin = { schedule, plannedAt: null }
      const { record } = await startPlanned(caller, task, origin, async (tx, { id: taskId, createdAt }) => {
        const current = await tx.get('schedules', id)
        if (!current) throw notFound('schedule', id)
        await stillAllowed(tx, caller, 'execute')
        tx.put('schedules', { ...current, lastRun: { taskId, at: createdAt } })
        await putSlots(tx, id, [ranByHand(id, createdAt, caller.username, taskId)])
        return null
      })
      await caller.started?.(record.id, false)
      const { status } = await context.engine.summary(record)
      return { taskId: record.id, status, hostCount: record.hostCount, replayedAfterSeconds: null }
    },
    async next(_, id, { count = defaultCount }) {
      const slots = slotsOf(await get(id))
      const next: string[] = []
      for (let slot = slots.next(clock.now()); slot !== null; slot = slots.next(slot)) {
        next.push(isoTime(slot))
        if (next.length >= count) break
      }
      return { next }
    },
    async history(_, id, query) {
      await get(id)
      const where = { equals: { scheduleId: id } }
      return storePage(store, 'slots', query, { where, order: 'desc' }, (items) => items.map(slotToApi))
    },
  }
}
