import { setTimeout as delay } from 'node:timers/promises'
import { isFinal, type Stream } from '../../core/tasks/task.ts'
import type { Execution, OwnEnd } from '../storage/ports/executions.ts'
import type { TaskRecord } from '../storage/records/task.ts'
import type { EngineParts } from './parts.ts'

/** Hosts that this server installs on at once, of all its tasks. */
const maxAtOnce = 16
/** Milliseconds after a refused write (a full disk). */
const retryAfter = 1000
const wasCut =
  'the server ended while it was installing there; what had begun may have gone on: rsm hosts list says whether it joined, and a retry installs it again'

/** Tasks of type INSTALL that this server owns: carried out by itself, over SSH. */
export interface Installs {
  /** Begins what is due, ends what was cancelled, and gives up what an earlier process of this server had begun. */
  reconcile(taskId: string): Promise<void>
  close(): void
}

class Stopped extends Error {}
class Cancelled extends Error {}
class TimedOut extends Error {}

export function createInstalls(parts: EngineParts): Installs {
  const { executions, store, member, install, log } = parts
  const running = new Map<string, AbortController>()
  /** Those that are due, in the order of their turns. */
  const waiting = new Set<string>()

  function pump(): void {
    for (const id of waiting) {
      if (running.size >= maxAtOnce || parts.isStopping()) return
      waiting.delete(id)
      running.set(id, new AbortController())
      const working = work(id).finally(() => {
        running.delete(id)
        pump()
      })
      parts.inBackground(working, 'an installation over SSH')
    }
  }

  async function work(id: string): Promise<void> {
    const [execution] = await executions.begin(member, [id])
    const task = execution && (await store.get('tasks', execution.taskId))
    const ending = running.get(id)
    if (!task || !ending) return
    const end = await endOf(task, execution, ending)
    // The next start finds it cut.
    if (end !== null) await settle(id, end)
  }

  async function endOf(
    task: TaskRecord,
    execution: Execution,
    ending: AbortController,
  ): Promise<OwnEnd | null> {
    const output = storedOutput(parts, execution)
    const { signal } = ending
    const timer =
      task.timeout === 0 ? undefined : setTimeout(() => ending.abort(new TimedOut()), task.timeout * 1000)
    try {
      await install(task, execution.hostId, { say: output.say, signal })
      return { status: 'SUCCESS', exitCode: 0, error: null }
    } catch (error) {
      return failed(signal.aborted ? signal.reason : error, task.id)
    } finally {
      clearTimeout(timer)
      await output.end()
    }
  }

  function failed(error: unknown, taskId: string): OwnEnd | null {
    if (error instanceof Stopped) return null
    if (error instanceof Cancelled)
      return {
        status: 'CANCELLED',
        exitCode: null,
        error: 'cancelled; an installation that had begun may continue on the host',
      }
    if (error instanceof TimedOut) return { status: 'TIMEOUT', exitCode: -1, error: null }
    const { message, exitCode } = error as { message: string; exitCode?: number }
    if (exitCode === undefined) log.error({ err: error, taskId }, 'an installation over SSH failed')
    return { status: 'FAILED', exitCode: exitCode ?? 1, error: message }
  }

  async function settle(id: string, end: OwnEnd): Promise<void> {
    while (!parts.isStopping())
      try {
        parts.ended(await executions.end(member, id, end))
        return
      } catch (error) {
        log.warn({ err: error }, 'the end of an installation could not be written; it is tried again')
        await delay(retryAfter, undefined, { ref: false })
      }
  }

  return {
    async reconcile(taskId) {
      const cut: string[] = []
      for (const { execution } of await executions.ofTask(taskId)) {
        const { id, status, dueAt, cancelRequested } = execution
        const under = running.get(id)
        if (status === 'RUNNING' && under === undefined) cut.push(id)
        // Of a host that was removed it has ended already.
        if (cancelRequested || isFinal(status)) under?.abort(new Cancelled())
        if (status === 'PENDING' && dueAt !== null && under === undefined && !executions.held.has(taskId))
          waiting.add(id)
      }
      if (cut.length > 0)
        parts.ended(
          await executions.lose(
            member,
            cut.map((id) => ({ id, error: wasCut })),
          ),
        )
      pump()
    },
    close() {
      waiting.clear()
      for (const ending of running.values()) ending.abort(new Stopped())
    },
  }
}

/** Writes messages of an installation to its task's log, as a script's output. */
function storedOutput({ executions, log }: Pick<EngineParts, 'executions' | 'log'>, execution: Execution) {
  const { id, taskId } = execution
  let sequence = 0
  let stored: Promise<unknown> = Promise.resolve()
  return {
    say: (stream: Stream, data: string): void => {
      const output = { taskId, stream, data, sequence: sequence++ }
      // It is not sent again: if it cannot be stored, the result says that it is missing.
      stored = executions.append(id, output, undefined, false).catch((error: unknown) => {
        log.warn({ err: error, taskId }, 'could not store what an installation said')
      })
    },
    end: (): Promise<unknown> => stored,
  }
}
