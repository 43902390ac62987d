import type { TaskEvent } from '../../client/watch.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'

/** One way to show a task: what comes goes in, in order, and then the end. A format is one file with one of these. */
export interface OutputFormat {
  event(event: TaskEvent): Promise<void> | void
  /** The task with its results, after its last event; also after an interruption, with what is known. */
  end(task: Task): Promise<void> | void
}
