import { setTimeout as delay } from 'node:timers/promises'
import { isFinal, type Stream } from '../../core/tasks/task.ts'
import { asBegun, asLost, asOwnEnd } from '../storage/executions/transitions.ts'
import type { Execution, OwnEnd } from '../storage/ports/executions.ts'
import type { TaskRecord } from '../storage/records/task.ts'
import type { EngineParts } from './parts.ts'

/** Installations in parallel on this server, over all tasks. */
const maxAtOnce = 16
/** Milliseconds before a refused write (full disk) is retried. */
const retryAfter = 1000
const wasCut =
  'the server stopped during the installation, which may still have completed: check rsm hosts list, or retry'

/** Tasks of type INSTALL that this server owns and carries out itself, over SSH. */
export interface Installs {
  /** Starts due executions, stops cancelled ones, ends those that an earlier process left running as LOST. */
  reconcile(taskId: string): Promise<void>
  close(): void
}

class Stopped extends Error {}
class Cancelled extends Error {}
class TimedOut extends Error {}

export function createInstalls(parts: EngineParts): Installs {
  const { executions, store, member, install, log } = parts
  const running = new Map<string, AbortController>()
  /** Ids of due executions, in the order in which they became due. */
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
    const [execution] = await executions.transition(asBegun(member, [id]))
    const task = execution && (await store.get('tasks', execution.taskId))
    const ending = running.get(id)
    if (!task || !ending) return
    const end = await endOf(task, execution, ending)
    // Null when the server stops: the next start ends it as LOST.
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
        parts.ended(await executions.transition(asOwnEnd(member, id, end)))
        return
      } catch (error) {
        log.warn({ err: error }, 'the end of an installation could not be written; retrying')
        await delay(retryAfter, undefined, { ref: false })
      }
  }

  return {
    async reconcile(taskId) {
      const cut: string[] = []
      for (const { execution } of await executions.page(taskId)) {
        const { id, status, dueAt, cancelRequested } = execution
        const under = running.get(id)
        if (status === 'RUNNING' && under === undefined) cut.push(id)
        // Executions on removed hosts are already final.
        if (cancelRequested || isFinal(status)) under?.abort(new Cancelled())
        if (status === 'PENDING' && dueAt !== null && under === undefined && !executions.held.has(taskId))
          waiting.add(id)
      }
      if (cut.length > 0)
        parts.ended(
          await executions.transition(
            asLost(
              { owner: member },
              cut.map((id) => ({ id, error: wasCut })),
            ),
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

function storedOutput({ executions, log }: Pick<EngineParts, 'executions' | 'log'>, execution: Execution) {
  const { id, taskId } = execution
  let sequence = 0
  let stored: Promise<unknown> = Promise.resolve()
  return {
    say: (stream: Stream, data: string): void => {
      const output = { taskId, stream, data, sequence: sequence++ }
      // Not retried: if an append fails, the result reports incomplete output.
      stored = executions.append(id, output, undefined, false).catch((error: unknown) => {
        log.warn({ err: error, taskId }, 'could not store the output of an installation')
      })
    },
    end: (): Promise<unknown> => stored,
  }
}
