import type { TaskEvent } from '../../client/watch.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import type { Sink } from './sink.ts'

/** One way to show a task: what comes goes in, in order, and then the end. A format is one file with one of these. */
export interface OutputFormat {
  event(event: TaskEvent): Promise<void> | void
  /** The task with its results, after its last event; also after an interruption, with what is known. */
  end(task: Task): Promise<void> | void
}

export interface FormatOptions {
  readonly stdout: Sink
  /** Of a format that goes to a file, the same file. */
  readonly stderr: Sink
  /** Both stand in one place: a terminal, a file. A line that is not ended on the one is in the way of the other. */
  readonly together: boolean
  readonly hostCount: number
  /** One host only: nobody else breaks into its lines. */
  readonly alone: boolean
  readonly prefix: boolean
  readonly raw: boolean
  readonly diff: boolean
  readonly timestamps?: { readonly utc: boolean } | undefined
  /** Takes the unfinished line of one of many hosts, '' once it is over; it stands nowhere else until it is finished. */
  readonly unfinished?: ((text: string) => void) | undefined
  readonly notice: (text: string) => void
}
