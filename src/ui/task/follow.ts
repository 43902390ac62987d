import type { Client } from '../../client/client.ts'
import { type TaskEvent, watchTask } from '../../client/watch.ts'
import { RsmError } from '../../core/errors.ts'
import type { LogQuery } from '../../core/protocol/http/logs.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { Halted, timedOutExit } from '../command/failure.ts'
import { deadlinePassed, finalTask, haltedUnanswered, haltedUnknown, lastLook } from './final-task.ts'
import { onInterruption, type Verdict } from './interruption.ts'
import { exitOfTask } from './outcome.ts'
import type { Outputs } from './outputs.ts'
import { SilentHosts } from './silent-hosts.ts'

interface FollowOptions {
  readonly client: Client
  /** Starts the task; a Ctrl-C that comes meanwhile is remembered, and `signal` aborts when it is not waited for any more. */
  readonly start: (signal: AbortSignal) => Promise<{ taskId: string; hostCount: number }>
  readonly outputs: Outputs
  readonly query?: LogQuery
  /** Seconds for the whole task: then it is cancelled, exit 124 (contract §9). */
  readonly deadline?: number | undefined
  /** Whether somebody can be asked about a Ctrl-C. */
  readonly terminal: boolean
  /** Told as soon as it is not followed to its end any more; `within` milliseconds of that the command is to be over. */
  readonly halted: (exit: number, within: number) => void
}

/** What ended the following before the task had ended. */
interface Halt {
  readonly exit: number
  readonly cancel: boolean
}

/** How long a cancelled task may take to end before it is left to itself, in milliseconds: with the last look 5 s (contract §9). */
const cancelWait = 5_000 - lastLook

interface Followed {
  readonly task: Task
  readonly exit: number
  /** Why it did not go on to its end, where the task itself does not say so. */
  readonly reason?: RsmError
}

/** Cancels; a task that has ended meanwhile is as good. */
async function cancel(client: Client, taskId: string, signal: AbortSignal): Promise<void> {
  await client.tasks.cancel(taskId, signal).catch((error: unknown) => {
    if (!(error instanceof RsmError && error.code === 'conflict')) throw error
  })
}

/** Rejects when nobody waits for the start any more. */
function aborted(signal: AbortSignal, error: () => Error): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(error()), { once: true })
  })
}

/** Starts a task, shows it to its end, and answers with its exit code; signals and the deadline as in contract §9. */
export async function runAndFollow(options: FollowOptions): Promise<Followed> {
  const { client, outputs } = options
  const notice = (text: string) => outputs.notice(text)
  const silent = new SilentHosts(notice)
  const halt = new AbortController()
  let taskId: string | undefined
  const halted: { by?: Halt } = {}
  let waiting: NodeJS.Timeout | undefined
  let isOver = false

  const stop = (exit: number, cancelling: boolean) => {
    if (halted.by !== undefined) return
    halted.by = { exit, cancel: cancelling }
    options.halted(exit, cancelWait + lastLook)
    interruption.settled()
    if (!cancelling) {
      halt.abort()
      return
    }
    if (taskId !== undefined) void carryOut(taskId)
    waiting = setTimeout(() => halt.abort(), cancelWait)
  }
  const carryOut = (id: string) =>
    cancel(client, id, halt.signal).catch((error: unknown) => {
      if (isOver) return
      if (halt.signal.aborted) notice(`the server has not answered that task ${id} is to be cancelled`)
      else notice(`could not cancel task ${id}: ${(error as Error).message}`)
      halt.abort()
    })
  const decided = (verdict: Verdict) =>
    verdict.kind === 'leave' ? stop(130, false) : stop(verdict.exit, true)
  const interruption = onInterruption({
    terminal: options.terminal,
    taskId: () => taskId,
    decided,
    asking: (isAsking) => (isAsking ? outputs.ask() : outputs.answered()),
  })
  const deadline =
    options.deadline === undefined
      ? undefined
      : setTimeout(() => stop(timedOutExit, true), options.deadline * 1000)

  try {
    const unanswered = () => haltedUnanswered(halted.by?.exit ?? 130)
    const started = await Promise.race([options.start(halt.signal), aborted(halt.signal, unanswered)])
    taskId = started.taskId
    // By a signal that came while the task was being started; those from now on know the task.
    if (halted.by?.cancel === true) void carryOut(taskId)
    await outputs.begin({ hostCount: started.hostCount, alone: started.hostCount === 1 })
    let end: Partial<Task> | undefined
    try {
      for await (const event of follow(client, taskId, options, halt.signal)) {
        await outputs.event(event)
        silent.event(event)
        if (event.type === 'end') end = event.task
      }
    } catch (error) {
      if (!halt.signal.aborted) {
        await endAsKnown(outputs)
        throw error
      }
    }
    const task = isWhole(end)
      ? end
      : await finalTask(
          client,
          taskId,
          halt.signal,
          halted.by?.cancel === false ? cancelWait : lastLook,
        ).catch(async (error: unknown) => {
          await endAsKnown(outputs)
          throw halted.by === undefined ? error : haltedUnknown(halted.by.exit, started.taskId, error)
        })
    const why = halted.by
    silent.close()
    await outputs.end(task)
    if (why === undefined) return { task, exit: exitOfTask(task) }
    // A task that ended by itself before the cancel reached it has its own result.
    const own = why.cancel && task.status !== 'RUNNING' && task.status !== 'CANCELLED'
    if (why.exit === timedOutExit && options.deadline !== undefined)
      return own
        ? { task, exit: exitOfTask(task) }
        : { task, exit: why.exit, reason: deadlinePassed(options.deadline, task) }
    if (!why.cancel) notice(`task ${taskId} goes on: rsm logs -f ${taskId}`)
    else if (task.status === 'RUNNING') notice(`task ${taskId} is being cancelled: rsm tasks wait ${taskId}`)
    return { task, exit: why.exit }
  } catch (error) {
    throw taskId === undefined ? error : naming(taskId, error)
  } finally {
    clearTimeout(waiting)
    clearTimeout(deadline)
    interruption.stop()
    silent.close()
    outputs.close()
    // A call that is still without an answer would keep the process.
    isOver = true
    halt.abort()
  }
}

/** Whatever fails after the start: who started a task is told which it is. */
function naming(taskId: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof Halted || error.message.includes(taskId)) return error
  const { code, fields, hint } =
    error instanceof RsmError ? error : { code: 'internal' as const, fields: [], hint: undefined }
  const what = error instanceof RsmError ? error.message : `internal error: ${error.message}`
  return new RsmError(code, `${what} (task ${taskId} was started)`, {
    fields,
    hint: [hint, `follow it: rsm logs -f ${taskId}`].filter((step) => step !== undefined).join('\n'),
    cause: error,
  })
}

/** Whether the server has sent the results with the end. */
function isWhole(end: Partial<Task> | undefined): end is Task {
  return end?.results !== undefined && end.taskId !== undefined
}

/** What has come is kept, though nobody can say how the task ends. */
async function endAsKnown(outputs: Outputs): Promise<void> {
  const { task } = outputs.known
  if (task !== undefined) await outputs.end(task)
}

function follow(
  client: Client,
  taskId: string,
  options: FollowOptions,
  signal: AbortSignal,
): AsyncGenerator<TaskEvent> {
  return watchTask(client.api, taskId, {
    signal,
    ...(options.query === undefined ? {} : { query: options.query }),
    onCut: (error, again) => {
      if (!again)
        options.outputs.notice(`${error.message}; trying again for 5 minutes (task ${taskId} goes on)`)
    },
  })
}
