import { BoundedMap } from '../../../core/bounded-map.ts'
import type { ScriptComplete } from '../../../core/protocol/messages.ts'
import { fetchedId } from '../../files/files.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import type { EngineParts } from '../parts.ts'

/** Limit of the cache of tasks, so that the ends of a large task read it once. */
const mostKnown = 1000

/** Advice for a task if a default timeout ended one of its scripts. */
interface Hints {
  readonly script: string | null
  readonly verify: string | null
  readonly rollback: string | null
}

function hintsOf(task: TaskRecord | undefined): Hints {
  const hint = (
    what: Pick<TaskRecord, 'timeout' | 'hasDefaultTimeout'> | null | undefined,
    advice: string,
  ) => (what?.hasDefaultTimeout === true ? `${what.timeout} s is the default timeout; ${advice}` : null)
  const { gates, scheduleId } = task ?? {}
  return {
    script: hint(task, `give ${scheduleId === undefined ? '' : 'its schedule '}a longer one (-u)`),
    verify: hint(gates?.verify, 'give the verify script a longer one'),
    rollback: hint(gates?.rollback, 'give the rollback script a longer one'),
  }
}

/** Checks the ends that agents report against the server's records of their tasks. */
export function createRefuted({ store }: Pick<EngineParts, 'store'>) {
  const tasks = new BoundedMap<string, { readonly isFetch: boolean; readonly hints: Hints }>(mostKnown)

  async function knownOf(taskId: string) {
    const known = tasks.get(taskId)
    if (known !== undefined) return known
    const task = await store.get('tasks', taskId)
    const found = { isFetch: task?.type === 'FETCH', hints: hintsOf(task) }
    tasks.set(taskId, found)
    return found
  }

  const isFetch = async (taskId: string) => (await knownOf(taskId)).isFetch

  return {
    isFetch,
    async timeoutHint({ taskId, exitCode, verify, rollback }: ScriptComplete): Promise<string | null> {
      const { hints } = await knownOf(taskId)
      const of = [
        exitCode === -1 && !verify ? hints.script : null,
        verify?.status === 'TIMEOUT' ? hints.verify : null,
        rollback?.status === 'TIMEOUT' ? hints.rollback : null,
      ]
      return of.filter((hint) => hint !== null).join('; ') || null
    },
    /** Returns why a SUCCESS cannot be true; null if it may be. */
    async reason(taskId: string, hostId: number): Promise<string | null> {
      if (!(await isFetch(taskId))) return null
      const isHere = (await store.get('files', fetchedId(taskId, hostId)))?.isComplete === true
      return isHere ? null : 'its agent reports SUCCESS, but has not sent the complete file'
    },
  }
}
