import { watchTask } from '../../client/watch.ts'
import { RsmError } from '../../core/errors.ts'
import type { LogQuery } from '../../core/protocol/http/logs.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { Halted, timedOutExit } from '../command/failure.ts'
import { exitOfTask } from '../output/outcome.ts'
import { Halting, type HaltOptions } from './halting.ts'
import { SilentHosts } from './silent-hosts.ts'

export interface FollowOptions extends Omit<HaltOptions, 'halted'> {
  /** Starts the task, or names one that was started elsewhere. `hostCount` is left out where the outputs have begun. */
  readonly start: (signal: AbortSignal) => Promise<{ taskId: string; hostCount?: number }>
  /** From where the log is shown, and which part of it. */
  readonly query?: LogQuery
  /** Narrows what is known of the task. */
  readonly select?: (task: Task) => Task
  /** The command that goes on where this one was left; `last` is the last output that was shown. */
  readonly resume: (taskId: string, last: number | undefined) => string
  readonly halted?: HaltOptions['halted']
}

interface Followed {
  readonly task: Task
  readonly exit: number
  /** Why it was not followed to its end, where the task itself does not say so. */
  readonly reason?: RsmError
  readonly isHalted: boolean
}

/** How long the last of the output may take to be written once nothing is waited for, in milliseconds. */
const writeTime = 1_000

/** A reader of stdout that stops reading would keep the process for ever. */
function endInTime(exit: number, within: number): void {
  setTimeout(() => process.exit(process.exitCode ?? exit), within + writeTime).unref()
}

/** Shows a task to its end and answers with its exit code; signals and the deadline as in contract §9. */
export async function followTask(options: FollowOptions): Promise<Followed> {
  const { outputs, select = (task: Task) => task } = options
  const halting = new Halting({ halted: endInTime, ...options })
  let taskId: string | undefined
  try {
    const started = await halting.begin(options.start)
    taskId = started.taskId
    const { hostCount } = started
    if (hostCount !== undefined) await outputs.begin({ hostCount, alone: hostCount === 1 })
    const { end, last } = await showEvents(taskId, options, halting)
    const task = select(end ?? (await halting.read(taskId)))
    await outputs.end(task)
    return concluded(task, last, options, halting)
  } catch (error) {
    // What has come is kept, though nobody can say how the task ends.
    const { task } = outputs.known
    if (task !== undefined) await outputs.end(select(task))
    throw taskId === undefined || options.signals === 'leave' ? error : naming(taskId, error)
  } finally {
    halting.close()
    outputs.close()
  }
}

/** `end` is the task if the server has sent it with its results. */
async function showEvents(
  taskId: string,
  { client, outputs, query = {} }: FollowOptions,
  { signal }: Halting,
): Promise<{ end: Task | undefined; last: number | undefined }> {
  const silent = new SilentHosts((line) => outputs.notice(line))
  const onCut = ({ message }: Error, again: boolean) => {
    if (!again) outputs.notice(`${message}; trying again for 5 minutes (task ${taskId} keeps running)`)
  }
  let end: Partial<Task> | undefined
  let last = query.after
  try {
    for await (const event of watchTask(client.api, taskId, { query, signal, onCut })) {
      await outputs.event(event)
      if (query.hostId === undefined) silent.event(event)
      if (event.type === 'output') last = event.entry.id
      else if (event.type === 'end') end = event.task
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    silent.close()
  }
  return { end: end?.results !== undefined && end.taskId !== undefined ? (end as Task) : undefined, last }
}

function concluded(
  task: Task,
  last: number | undefined,
  { outputs, deadline, resume }: FollowOptions,
  { by }: Halting,
): Followed {
  const { taskId, status } = task
  const own = { task, exit: exitOfTask(task), isHalted: false }
  if (by === undefined) return own
  const left = { task, exit: by.exit, isHalted: true }
  if (by.exit === timedOutExit) {
    // A task that ended by itself before the cancel reached it has its own result.
    if (status !== 'RUNNING' && status !== 'CANCELLED') return own
    const fate = status === 'RUNNING' ? 'is being cancelled' : 'was cancelled'
    const passed = `the deadline of ${deadline} s has passed: task ${taskId} ${fate}`
    return { ...left, reason: new Halted(timedOutExit, passed) }
  }
  if (status === 'RUNNING')
    outputs.notice(
      by.kind === 'leave'
        ? `task ${taskId} is still running: ${resume(taskId, last)}`
        : `task ${taskId} is being cancelled: rsm tasks wait ${taskId}`,
    )
  return left
}

/** Whatever fails after the start: who started a task is told which it is. */
function naming(taskId: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof Halted || error.message.includes(taskId)) return error
  const { code, fields, hint } =
    error instanceof RsmError ? error : { code: 'internal' as const, fields: [], hint: undefined }
  const message = error instanceof RsmError ? error.message : `internal error: ${error.message}`
  return new RsmError(code, `${message} (task ${taskId} was started)`, {
    fields,
    hint: [hint, `follow it: rsm logs -f ${taskId}`].filter((step) => step !== undefined).join('\n'),
    cause: error,
  })
}
