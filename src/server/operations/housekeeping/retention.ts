import { RsmError } from '../../../core/errors.ts'
import type { Mutex } from '../../../core/mutex.ts'
import type { OldData } from '../../../core/protocol/control.ts'
import type { Age } from '../../../disk/agreed-clock.ts'
import { type Clock, isoTime } from '../../../disk/clock.ts'
import type { Log } from '../../../disk/log.ts'
import type { ReadersOfTasks } from '../../services/logs/readers.ts'
import { timeOfId } from '../../storage/ids.ts'
import type { Data } from '../../storage/ports/data.ts'
import type { Outputs, Results } from '../../storage/ports/outputs.ts'
import type { Store } from '../../storage/ports/store.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import type { TerminalRetention } from '../../terminals/retention.ts'

/** Days (contract §4). */
export const defaultTaskRetention = 30
/** Days that ended terminal sessions and their recordings are kept. */
export const defaultRecordingRetention = 90
const day = 24 * 3600_000
/** Removals per transaction, so that a sweep does not block other writes for long. */
const atOnce = 200

interface RetentionParts {
  store: Store
  outputs: Outputs
  results: Results
  readers: ReadersOfTasks
  agreed: { age(): Age }
  clock: Clock
  log: Log
}

/** Tasks to remove, and the bytes of their output. */
interface Going {
  tasks: number
  bytes: number
}

interface RetentionPlan {
  byAge: Going
  /** The oldest tasks within the age limit, until the rest fits the size limit. */
  bySize: Going
  kept: Going
}

interface RetentionLimits {
  /** 0 = forever. */
  readonly days: number
  /** Output of all tasks on disk; 0 = unlimited. */
  readonly maxOutputBytes: number
}

/** Retention of ended tasks and their output (contract §4). */
export interface Retention extends RetentionLimits {
  plan(): Promise<RetentionPlan>
  /** Removes ended tasks beyond a limit, except those being read (contract §4). Returns their number. */
  sweep(): Promise<number>
}

type Ended = Readonly<TaskRecord>

export function createRetention(
  { store, outputs, results, readers, agreed, clock, log }: RetentionParts,
  { days, maxOutputBytes }: RetentionLimits,
): Retention {
  async function forget(taskId: string): Promise<void> {
    await outputs.forget(taskId)
    await results.forget(taskId)
  }

  /** Task folders that are not in the store: a sweep was interrupted, or it is another store. */
  async function moveOrphansAside(): Promise<void> {
    const ids = await results.list()
    const tasks = await store.getMany('tasks', ids)
    const orphans = ids.filter((id, index) => timeOfId(id) !== null && !tasks[index] && !readers.has(id))
    if (orphans.length === 0) return
    const folder = await results.orphans.moveAside(orphans, clock.now())
    log.warn({ folder, tasks: orphans }, 'output of tasks that are not in the store was moved aside')
  }

  async function pastDays(): Promise<Ended[]> {
    if (days === 0) return []
    const age = agreed.age()
    const ended = { before: { completedAt: isoTime(clock.now() - days * day) } }
    return (await store.query('tasks', { where: ended })).items.filter(
      ({ id, completedAt }) =>
        completedAt !== null && age(Date.parse(completedAt)) > days * day && !readers.has(id),
    )
  }

  /** The oldest ended tasks with output, until the rest fits the size limit. */
  function pastSize(stays: readonly Ended[], sizes: ReadonlyMap<string, number>): Ended[] {
    if (maxOutputBytes === 0) return []
    let bytes = stays.reduce((sum, { id }) => sum + (sizes.get(id) ?? 0), 0)
    const going: Ended[] = []
    // Ids ascend with time.
    for (const task of stays) {
      if (bytes <= maxOutputBytes) break
      const size = sizes.get(task.id) ?? 0
      if (task.completedAt === null || size === 0 || readers.has(task.id)) continue
      bytes -= size
      going.push(task)
    }
    return going
  }

  async function sizesOf(tasks: readonly Ended[]): Promise<Map<string, number>> {
    const sizes = new Map<string, number>()
    for (const { id } of tasks) sizes.set(id, await outputs.size(id))
    return sizes
  }

  async function split(withSizes: boolean) {
    const byAge = await pastDays()
    const isOld = new Set(byAge.map(({ id }) => id))
    if (!withSizes) return { byAge, bySize: [], stays: [], sizes: new Map<string, number>() }
    const tasks = (await store.query('tasks')).items
    const sizes = await sizesOf(tasks)
    const young = tasks.filter(({ id }) => !isOld.has(id))
    const bySize = pastSize(young, sizes)
    const isTooMuch = new Set(bySize.map(({ id }) => id))
    return { byAge, bySize, stays: young.filter(({ id }) => !isTooMuch.has(id)), sizes }
  }

  async function remove(tasks: readonly Ended[]): Promise<number> {
    let removed = 0
    for (let from = 0; from < tasks.length; from += atOnce) {
      const batch: Ended[] = []
      for (const task of tasks.slice(from, from + atOnce))
        if (!(await readers.isReadElsewhere(task.id))) batch.push(task)
      removed += batch.length
      await store.transact((tx) => {
        for (const { id } of batch) tx.remove('tasks', id)
      })
      for (const { id } of batch) await forget(id)
    }
    return removed
  }

  let hasCheckedOrphans = false
  return {
    days,
    maxOutputBytes,
    async plan() {
      const { byAge, bySize, stays, sizes } = await split(true)
      const going = (tasks: readonly Ended[]) => ({
        tasks: tasks.length,
        bytes: tasks.reduce((sum, { id }) => sum + (sizes.get(id) ?? 0), 0),
      })
      return { byAge: going(byAge), bySize: going(bySize), kept: going(stays) }
    },
    async sweep() {
      const { byAge, bySize } = await split(maxOutputBytes > 0)
      const removed = await remove([...byAge, ...bySize])
      if (days > 0) {
        if (!hasCheckedOrphans) await moveOrphansAside()
        hasCheckedOrphans = true
        await results.orphans.sweep(days, agreed.age())
      }
      return removed
    },
  }
}

/** Whether a task or session id is old enough that the record may have been removed: 410 instead of 404. */
export function isPastRetention(id: string, days: number, age: Age): boolean {
  const made = timeOfId(id)
  return days > 0 && made !== null && age(made) > days * day
}

interface RemovalParts {
  readonly retention: Retention
  readonly oldTerminals: TerminalRetention
  /** Held by a backup and by other removals. */
  readonly dataLock: Mutex
  /** Runs work on one server of the store at a time. */
  readonly tryExclusive: Data['tryExclusive']
}

/**
 * Reports data beyond the limits, and removes it unless `dryRun`. Errors: `conflict` during a backup or
 * removal.
 */
export type RemoveOld = (options: { dryRun: boolean }) => Promise<OldData>

export function createRemoval({ retention, oldTerminals, dataLock, tryExclusive }: RemovalParts): RemoveOld {
  async function remove(): Promise<void> {
    await retention.sweep()
    await oldTerminals.sweep()
  }
  return async ({ dryRun }) => {
    const release = dryRun ? () => undefined : dataLock.tryAcquire()
    // Fail instead of waiting: a backup may take an hour.
    if (release === null) throw underWay()
    try {
      const plan = await retention.plan()
      const sessions = await oldTerminals.plan()
      const limits = {
        taskRetention: retention.days,
        recordingRetention: oldTerminals.days,
        maxOutputBytes: retention.maxOutputBytes,
      }
      if (!dryRun && !(await tryExclusive(remove))) throw underWay()
      return { ...limits, ...plan, terminals: sessions, removed: !dryRun }
    } finally {
      release()
    }
  }
}

const underWay = () =>
  new RsmError('conflict', 'a backup or another removal is under way: nothing was removed', {
    hint: 'try again when it has ended',
  })
