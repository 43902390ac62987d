import type { Executions } from '../../seams/executions.ts'
import type { Steps } from './steps.ts'

/** What is asked of running tasks: answered from memory. */
export function createQueries({
  tasks,
  isWaiting,
}: Steps): Pick<
  Executions,
  'find' | 'ofTask' | 'ofHost' | 'open' | 'waiting' | 'counts' | 'changes' | 'running'
> {
  return {
    async find(taskId, hostId) {
      const task = tasks.get(taskId)
      const execution = task?.ofHost(hostId)
      return execution && task?.show(execution)
    },
    async ofTask(taskId) {
      const task = tasks.get(taskId)
      return task?.executions.map((execution) => task.show(execution)) ?? []
    },
    ofHost: async (hostId) =>
      (tasks.openOn(hostId)?.all() ?? [])
        .filter((execution) => execution.status === 'RUNNING' || isWaiting(execution))
        .map((execution) => tasks.of(execution).show(execution)),
    open: async () => tasks.open(),
    waiting: async () => tasks.open().filter(isWaiting),
    counts: async (taskId) => tasks.get(taskId)?.counts ?? null,
    changes: async (taskId, after) => tasks.get(taskId)?.changes(after) ?? { executions: [], cursor: after },
    running: async () => tasks.ids(),
  }
}
