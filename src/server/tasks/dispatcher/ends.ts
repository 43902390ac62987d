import { BoundedMap } from '../../../core/bounded-map.ts'
import type { ScriptComplete } from '../../../core/protocol/messages.ts'
import { longestRun } from '../../../core/tasks/gates.ts'
import { fetchedId } from '../../files/files.ts'
import { asLost } from '../../storage/executions/transitions.ts'
import type { AgentLink } from '../../storage/ports/cluster.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import type { EngineParts } from '../parts.ts'
import { isTooSilent, silence, silentError } from '../scheduler/watch.ts'
import type { HostState, HostStates } from './host-states.ts'

/** Cache limit; the cache lets the ends of a large task read it once. */
const maxCached = 1000

/** Facts of tasks that check and explain ends reported by agents. */
export function createEndChecks({ store }: Pick<EngineParts, 'store'>) {
  const tasks = new BoundedMap<string, { readonly isFetch: boolean; readonly hints: TimeoutHints }>(maxCached)

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
    /** Why a reported SUCCESS cannot be true; null if it may be. */
    async reason(taskId: string, hostId: number): Promise<string | null> {
      if (!(await isFetch(taskId))) return null
      const isHere = (await store.get('files', fetchedId(taskId, hostId)))?.isComplete === true
      return isHere ? null : 'its agent reports SUCCESS, but has not sent the complete file'
    },
  }
}

interface TimeoutHints {
  readonly script: string | null
  readonly verify: string | null
  readonly rollback: string | null
}

function hintsOf(task: TaskRecord | undefined): TimeoutHints {
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

/** Ends executions that linked agents do not report; for unlinked hosts, the task's owner does. */
export function createSilent(parts: EngineParts, states: HostStates) {
  const { executions, store, clock } = parts

  async function longestOf(taskId: string): Promise<number> {
    const task = await store.get('tasks', taskId)
    return longestRun(task?.timeout ?? 0, task?.gates)
  }

  async function check(link: AgentLink, { named, heard }: HostState): Promise<void> {
    const now = clock.monotonic()
    for (const [taskId, at] of heard) {
      // A linked agent that named the task reports that it still runs: the task's owner bounds that.
      if (link.hello && named.has(taskId)) heard.set(taskId, now)
      else if (now - at > silence && isTooSilent(await longestOf(taskId), now - at))
        parts.ended(
          await executions.transition(
            asLost({ link: link.claim }, [{ id: `${taskId}/${link.hostId}`, error: silentError(now - at) }]),
          ),
        )
    }
  }

  return {
    async sweep(): Promise<void> {
      for (const state of states.values()) if (state.link) await check(state.link, state)
    },
  }
}
