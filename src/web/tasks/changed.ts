import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { TaskResult } from '../../core/tasks/task.ts'

type Copying = Pick<TaskSummary, 'copy'>

/** Whether a copy writes nothing. */
export const isDryRun = ({ copy }: Copying): boolean => copy?.check !== undefined

/** What a copy did to a host, or would have; empty where nobody knows, and of other tasks. */
export function changedSaid(task: Copying, { changed }: Pick<TaskResult, 'changed'>): string {
  if (task.copy === null || changed === null) return ''
  if (!changed) return 'unchanged'
  return isDryRun(task) ? 'would change' : 'changed'
}
