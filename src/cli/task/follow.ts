import { watchTask } from '../../client/watch.ts'
import { RsmError } from '../../core/errors.ts'
import type { LogQuery } from '../../core/protocol/http/logs.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { Halted, timedOutExit } from '../command/failure.ts'
import { exitOfTask } from '../output/outcome.ts'
import { Halting, type HaltOptions } from './halting.ts'
import { SilentHosts } from './silent-hosts.ts'

export interface FollowOptions extends Omit<HaltOptions, 'halted'> {
  /** Starts or identifies the task. `hostCount` is omitted if the outputs have already started. */
  readonly start: (signal: AbortSignal) => Promise<{ taskId: string; hostCount?: number }>
  /** Position and filter of the displayed log. */
  readonly query?: LogQuery
  readonly select?: (task: Task) => Task
  /** The command that continues where this one stopped; `last` is the last output shown. */
  readonly resume: (taskId: string, last: number | undefined) => string
  readonly halted?: HaltOptions['halted']
}

interface Followed {
  readonly task: Task
  readonly exit: number
  /** Why following stopped early, if the task does not say so. */
  readonly reason?: RsmError
  readonly isHalted: boolean
}

/** Milliseconds for writing the last output after following ends. */
const writeTime = 1_000

/** A reader of stdout that stops reading would keep the process forever. */
function endInTime(exit: number, within: number): void {
  setTimeout(() => process.exit(process.exitCode ?? exit), within + writeTime).unref()
}

/** Shows a task to its end and returns its exit code; handles signals and the deadline (contract §9). */
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
    // Keep the output so far, although the task's end is unknown.
    const { task } = outputs.known
    if (task !== undefined) await outputs.end(select(task))
    throw taskId === undefined || options.signals === 'leave' ? error : naming(taskId, error)
  } finally {
    halting.close()
    outputs.close()
  }
}

/** `end` is the task if the server sent it with results. */
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
    // A task that ended before the cancel reached it has its own result.
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

/** Adds the task's id to errors after its start. */
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
