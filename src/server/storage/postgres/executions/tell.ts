import { isFinal } from '../../../../core/tasks/task.ts'
import type { Execution } from '../../ports/executions.ts'
import type { Hints } from '../../ports/hints.ts'
import type { Written } from './write.ts'

/** Hints at what this server has written. */
export interface Tell {
  changed(written: readonly Pick<Written, 'stored' | 'hasMore'>[]): void
  task(taskId: string, change: 'created' | 'updated'): void
  /** What is due among these can be taken. */
  due(executions: readonly Execution[]): void
  /** Whether what is heard now is told by this server itself. */
  readonly isTelling: boolean
}

const isDue = ({ status, dueAt, overSsh }: Execution) => status === 'PENDING' && dueAt !== null && !overSsh

export function createTell(hints: Hints): Tell {
  let isTelling = false

  function publish(publishAll: () => void): void {
    isTelling = true
    try {
      publishAll()
    } finally {
      isTelling = false
    }
  }

  const queues = (hostIds: Iterable<number>) => {
    for (const id of new Set(hostIds)) hints.publish('lane', { id })
  }

  return {
    get isTelling() {
      return isTelling
    },
    changed(written) {
      const executions = written.map(({ stored }) => stored.execution)
      publish(() => {
        for (const { taskId: id, hostId } of executions)
          hints.publish('task', { id, hostId, change: 'updated' })
        for (const id of new Set(executions.map(({ taskId }) => taskId)))
          hints.publish('task', { id, hostId: null, change: 'updated' })
        queues(
          written.flatMap(({ stored: { execution }, hasMore }) => {
            const { status, cancelRequested, hostId } = execution
            const isToDo = isDue(execution) || (status === 'RUNNING' && cancelRequested)
            return isToDo || (isFinal(status) && hasMore) ? [hostId] : []
          }),
        )
      })
    },
    task: (id, change) => publish(() => hints.publish('task', { id, hostId: null, change })),
    due: (executions) => publish(() => queues(executions.filter(isDue).map(({ hostId }) => hostId))),
  }
}
