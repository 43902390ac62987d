import type { Stream } from '../../../core/tasks/task.ts'
import type { Execution } from '../../storage/ports/executions.ts'
import type { EngineParts } from '../parts.ts'

/** What is said of an installation goes to its task's log, as a script's output does. */
export function storedOutput(
  { executions, log }: Pick<EngineParts, 'executions' | 'log'>,
  execution: Execution,
) {
  const { id, taskId } = execution
  let sequence = 0
  let stored: Promise<unknown> = Promise.resolve()
  return {
    say: (stream: Stream, data: string): void => {
      const output = { taskId, stream, data, sequence: sequence++ }
      // Nobody sends it again: what can't be stored is missing, and the result says so.
      stored = executions.append(id, output, undefined, false).catch((error: unknown) => {
        log.warn({ err: error, taskId }, 'could not store what an installation said')
      })
    },
    end: (): Promise<unknown> => stored,
  }
}
