import type { Client } from '../../client/client.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { Halted, timedOutExit } from '../command/failure.ts'

/** How long the server may take to say how a task stands that is not followed any more, in milliseconds. */
export const lastLook = 1_000

/** The task as the server has it, with its results. `halt` ends a wait for that, and leaves one of `patience` to who asks after it. */
export function finalTask(
  client: Client,
  taskId: string,
  halt: AbortSignal,
  patience: number = lastLook,
): Promise<Task> {
  return client.tasks.get(taskId, {}, halt.aborted ? AbortSignal.timeout(patience) : halt)
}

function reasonOf(exit: number): string {
  return exit === timedOutExit ? 'the deadline has passed' : 'interrupted'
}

/** What a task that was cancelled at its deadline of so many seconds does not tell by itself. */
export function deadlinePassed(seconds: number, { taskId, status }: Task): Halted {
  const fate = status === 'RUNNING' ? 'is being cancelled' : 'was cancelled'
  return new Halted(timedOutExit, `the deadline of ${seconds} s has passed: task ${taskId} ${fate}`)
}

/** Nobody waits for the server to say what it has started. */
export function haltedUnanswered(exit: number): Halted {
  const message = `${reasonOf(exit)} before the server had answered; the task may have started`
  return new Halted(exit, message, { hint: 'rsm tasks list --status RUNNING' })
}

/** The last look told nothing. */
export function haltedUnknown(exit: number, taskId: string, cause: unknown): Halted {
  const message = `${reasonOf(exit)}; how task ${taskId} stands is not known`
  return new Halted(exit, message, { hint: `rsm tasks show ${taskId}`, cause })
}
