import { longestRun } from '../../../core/tasks/gates.ts'
import type { AgentLink } from '../../storage/ports/agent-link.ts'
import type { EngineParts } from '../parts.ts'
import { isTooSilent, silence, silentError } from '../silence.ts'
import type { HostQueue, HostQueues } from './host-queues.ts'

/**
 * Looks after executions of which linked agents say nothing. Of hosts without a link the owner of the task does: it can't know
 * what is heard over a link elsewhere.
 */
export function createSilent(parts: EngineParts, queues: HostQueues) {
  const { executions, store, clock } = parts

  async function longestOf(taskId: string): Promise<number> {
    const task = await store.get('tasks', taskId)
    return longestRun(task?.timeout ?? 0, task?.gates)
  }

  async function look(link: AgentLink, { named, heard }: HostQueue): Promise<void> {
    const now = clock.monotonic()
    for (const [taskId, at] of heard) {
      // A linked agent of ours that has named it says that it still runs: the task's owner bounds that.
      if (link.hello && named.has(taskId)) heard.set(taskId, now)
      else if (now - at > silence && isTooSilent(await longestOf(taskId), now - at))
        parts.ended(
          await executions.lose(link.claim, [
            { id: `${taskId}/${link.hostId}`, error: silentError(now - at) },
          ]),
        )
    }
  }

  return {
    async sweep(): Promise<void> {
      for (const queue of queues.values()) if (queue.link) await look(queue.link, queue)
    },
  }
}
