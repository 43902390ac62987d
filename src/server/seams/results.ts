import type { TaskResult } from '../../core/task/task.ts'
import type { Orphans } from './orphans.ts'

/** Part of a task's results: at most `limit` from position `offset` of its plan, or those of some hosts. */
export type Part =
  | { readonly offset: number; readonly limit: number }
  | { readonly hostIds: readonly number[] }

/** What a finished task leaves beside its output: the text that ran and every host's result. */
export interface TaskRemains {
  script: string
  results: TaskResult[]
  /** The texts that followed on it; absent where none did. */
  gates?: { verify: string | null; rollback: string | null }
  /** Its params; absent where its record has them. */
  params?: Record<string, string>
}

/** The results of finished tasks, apart from the store. */
export interface Results {
  write(taskId: string, archived: TaskRemains): Promise<void>
  /** Null if the results are gone (a lost disk); the counts in the task are still valid. Errors: `gone` if they are damaged. */
  read(taskId: string, part?: Part): Promise<TaskRemains | null>
  /** Removes all that a task has left. */
  forget(taskId: string): Promise<void>
  /** The tasks that have left something. */
  list(): Promise<string[]>
  readonly orphans: Orphans
}
