import type { Age } from '../../disk/agreed-clock.ts'
import { type Clock, isoTime } from '../clock.ts'
import { timeOfId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Outputs } from '../seams/outputs.ts'
import type { Results } from '../seams/results.ts'
import type { Store } from '../seams/store.ts'
import type { ReadersOfTasks } from './readers-of-tasks.ts'

/** Days (contract §4). */
export const defaultTaskRetention = 30
/** Days for which ended terminal sessions and their recordings are kept. */
export const defaultRecordingRetention = 90
const day = 24 * 3600_000
/** Removals of one transaction, so that no sweep holds up others' writes. */
const atOnce = 200

interface Kept {
  store: Store
  outputs: Outputs
  results: Results
  readers: ReadersOfTasks
  agreed: { age(): Age }
  clock: Clock
  log: Log
}

/** How long ended tasks are kept, with their output (contract §4). */
export interface Retention {
  /** 0 = for good. */
  readonly days: number
  /** Removes ended tasks that are past it; nothing that runs or is being read (contract §4). Answers how many. */
  sweep(): Promise<number>
}

/** Whether an id is one of a task or session so old that it may have been removed: what is asked of it is 410, not 404. */
export function isPastRetention(id: string, days: number, age: Age): boolean {
  const made = timeOfId(id)
  return days > 0 && made !== null && age(made) > days * day
}

/** `days` 0 keeps everything. */
export function createRetention(
  { store, outputs, results, readers, agreed, clock, log }: Kept,
  days: number,
): Retention {
  async function forget(taskId: string): Promise<void> {
    await outputs.forget(taskId)
    await results.forget(taskId)
  }

  /** Folders of tasks that are not in the store: a former sweep was cut off between the two, or it is another store. */
  async function moveOrphansAside(): Promise<void> {
    const ids = await results.list()
    const tasks = await store.getMany('tasks', ids)
    const orphans = ids.filter((id, index) => timeOfId(id) !== null && !tasks[index] && !readers.has(id))
    if (orphans.length === 0) return
    const folder = await results.orphans.moveAside(orphans, clock.now())
    log.warn({ folder, tasks: orphans }, 'output of tasks that are not in the store was moved aside')
  }

  let hasLookedForOrphans = false
  return {
    days,
    async sweep() {
      if (days === 0) return 0
      const age = agreed.age()
      const ended = { before: { completedAt: isoTime(clock.now() - days * day) } }
      const past = (await store.query('tasks', { where: ended })).items.filter(
        ({ id, completedAt }) =>
          completedAt !== null && age(Date.parse(completedAt)) > days * day && !readers.has(id),
      )
      for (let from = 0; from < past.length; from += atOnce) {
        const batch = past.slice(from, from + atOnce)
        await store.transact((tx) => {
          for (const { id } of batch) tx.remove('tasks', id)
        })
        for (const { id } of batch) await forget(id)
      }
      if (!hasLookedForOrphans) await moveOrphansAside()
      hasLookedForOrphans = true
      await results.orphans.sweep(days, age)
      return past.length
    },
  }
}
