import type { TaskEvent } from '../../client/watch.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import type { Sink } from './sink.ts'

/** One way to show a task: what comes goes in, in order, and then the end. A format is one file with one of these. */
export interface OutputFormat {
  event(event: TaskEvent): Promise<void> | void
  /** The task with its results, after its last event; also after an interruption, with what is known. */
  end(task: Task): Promise<void> | void
}

/** What a format is given. */
export interface FormatOptions {
  readonly stdout: Sink
  /** Of a format that goes to a file, the same file. */
  readonly stderr: Sink
  /** Both stand in one place: a terminal, a file. A line that is not ended on the one is in the way of the other. */
  readonly together: boolean
  readonly hostCount: number
  /** One host only: nobody else breaks into its lines. */
  readonly alone: boolean
  /** `HOST: ` before each line. */
  readonly prefix: boolean
  /** Control sequences of the hosts are let through. */
  readonly raw: boolean
  /** How the odd ones differ from the majority. */
  readonly diff: boolean
  readonly timestamps?: { readonly utc: boolean } | undefined
  /** Takes the unfinished line of one of many hosts, '' once it is over; it stands nowhere else until it is finished. */
  readonly unfinished?: ((text: string) => void) | undefined
  /** Something that people should know and that is no output. */
  readonly notice: (text: string) => void
}
