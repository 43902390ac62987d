import { fetchedId } from '../../files/files.ts'
import type { TaskRecord } from '../../seams/records/task.ts'
import type { EngineParts } from '../parts.ts'

/** Tasks that are remembered, so that the ends of a large task read it once. */
const mostKnown = 1000

interface Known {
  readonly isFetch: boolean
  readonly timeoutHint: string | null
}

function timeoutHintOf({ timeout, hasDefaultTimeout, scheduleId }: TaskRecord): string | null {
  if (hasDefaultTimeout !== true) return null
  const what = scheduleId === undefined ? 'give' : 'give its schedule'
  return `${timeout} s is the default timeout; ${what} a longer one (-u)`
}

/** Judges the ends that agents report by what the server has of their tasks. */
export function createRefuted({ store }: Pick<EngineParts, 'store'>) {
  const tasks = new Map<string, Known>()

  async function knownOf(taskId: string): Promise<Known> {
    const known = tasks.get(taskId)
    if (known !== undefined) return known
    const task = await store.get('tasks', taskId)
    const found = { isFetch: task?.type === 'FETCH', timeoutHint: (task && timeoutHintOf(task)) ?? null }
    tasks.set(taskId, found)
    const [oldest] = tasks.keys()
    if (tasks.size > mostKnown && oldest !== undefined) tasks.delete(oldest)
    return found
  }

  const isFetch = async (taskId: string) => (await knownOf(taskId)).isFetch

  return {
    isFetch,
    timeoutHint: async (taskId: string) => (await knownOf(taskId)).timeoutHint,
    /** Returns why a SUCCESS cannot be true; null if it may be. */
    async reason(taskId: string, hostId: number): Promise<string | null> {
      if (!(await isFetch(taskId))) return null
      const isHere = (await store.get('files', fetchedId(taskId, hostId)))?.isComplete === true
      return isHere ? null : 'its agent reports SUCCESS, but has not sent the complete file'
    },
  }
}
