import { foldIds } from '../../../core/tasks/id-set.ts'
import type { Log } from '../../../disk/log.ts'
import type { Store } from '../../storage/ports/store.ts'
import type { TaskRecord } from '../../storage/records/task.ts'

/** Tasks in one transaction. */
const atOnce = 500

interface Parts {
  readonly store: Store
  readonly engine: { results(task: TaskRecord): Promise<readonly { hostId: number }[]> }
  readonly log: Log
}

/**
 * Notes on which hosts the tasks of older servers ran, so that a search by host finds them: only their results say it. Tasks
 * whose results are gone stay without. A full disk does not keep the server from starting: the next start tries again.
 */
export async function fillHostSets({ store, engine, log }: Parts): Promise<void> {
  const { items } = await store.query('tasks', { where: { equals: { hostSet: '' } } })
  try {
    for (let from = 0; from < items.length; from += atOnce) {
      const sets = new Map<string, string>()
      for (const task of items.slice(from, from + atOnce))
        sets.set(task.id, foldIds((await engine.results(task)).map(({ hostId }) => hostId)))
      await store.transact(async (tx) => {
        for (const task of await tx.getMany('tasks', [...sets.keys()])) {
          const hostSet = task && sets.get(task.id)
          if (hostSet) tx.put('tasks', { ...task, hostSet })
        }
      })
    }
  } catch (error) {
    log.warn({ err: error }, 'a search of tasks by host misses tasks of older servers until the next start')
  }
}
