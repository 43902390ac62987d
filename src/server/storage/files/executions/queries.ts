import { isFinal } from '../../../../core/tasks/task.ts'
import type { Executions } from '../../ports/executions.ts'
import { partOf } from '../results.ts'
import type { Steps } from './steps.ts'

/** What is asked of running tasks: answered from memory. */
export function createQueries({
  tasks,
  isWaiting,
  deps: { store },
}: Steps): Pick<
  Executions,
  | 'transactWithOpen'
  | 'find'
  | 'ofHosts'
  | 'ofTask'
  | 'ofHost'
  | 'waiting'
  | 'waitingOn'
  | 'counts'
  | 'changes'
  | 'changedTasks'
  | 'running'
  | 'load'
> {
  return {
    transactWithOpen: (hostId, work) =>
      store.transact(async (tx) => {
        const all = await tx.find('executions', 'hostId', hostId)
        return work(tx, all.filter(({ status }) => !isFinal(status)).length)
      }),
    async find(taskId, hostId) {
      const task = tasks.get(taskId)
      const execution = task?.ofHost(hostId)
      return execution && task?.show(execution)
    },
    async ofHosts(taskId, hostIds) {
      const task = tasks.get(taskId)
      return hostIds.flatMap((hostId) => {
        const execution = task?.ofHost(hostId)
        return task && execution ? [task.show(execution)] : []
      })
    },
    async ofTask(taskId, part) {
      const task = tasks.get(taskId)
      return task ? partOf(task.executions, part).map((execution) => task.show(execution)) : []
    },
    ofHost: async (hostId) =>
      (tasks.openOn(hostId)?.all() ?? [])
        .filter((execution) => execution.status === 'RUNNING' || isWaiting(execution))
        .map((execution) => tasks.of(execution).show(execution)),
    waiting: async (hostIds) =>
      hostIds.filter((hostId) => tasks.openOn(hostId)?.waiting.some(isWaiting) === true),
    waitingOn: async (hostId) => tasks.openOn(hostId)?.waiting.filter(isWaiting).length ?? 0,
    counts: async (taskId) => tasks.get(taskId)?.counts ?? null,
    changes: async (taskId, after) => tasks.get(taskId)?.changes(after) ?? { executions: [], cursor: after },
    // To look at each costs nothing here.
    changedTasks: async (taskIds, after) => ({ taskIds: [...taskIds], cursor: after }),
    running: async () => tasks.ids(),
    async load() {
      const open = tasks.open()
      const running = open.filter(({ status }) => status === 'RUNNING').length
      return { tasks: tasks.ids().length, running, waiting: open.length - running }
    },
  }
}
