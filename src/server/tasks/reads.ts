import { RsmError } from '../../core/errors.ts'
import type { Task, TaskSummary } from '../../core/protocol/http/tasks.ts'
import { type Counts, countsOf, emptyCounts, isFinal, type TaskResult } from '../../core/tasks/task.ts'
import type { Carried } from '../files/transfers.ts'
import { type Texts, textsOf } from '../storage/executions/ends.ts'
import { resultOf, summaryOf } from '../storage/executions/summary.ts'
import type { RunningExecution } from '../storage/ports/executions.ts'
import type { Part } from '../storage/ports/outputs.ts'
import type { TaskRecord } from '../storage/records/task.ts'
import type { EngineParts } from './parts.ts'
import { notesOf } from './scheduler/silence.ts'

/** Poll interval in milliseconds, in case a hint is lost. */
const lostHint = 1000

export interface Reads {
  summary(task: TaskRecord): Promise<TaskSummary>
  /** Bytes of its file that passed this server, by host, while the task runs. */
  passed: Carried['passed']
  /** All results, or a part, in plan order. */
  results(task: TaskRecord, part?: Part): Promise<Task['results']>
  /** A summary with consistent results: final for a final task; adding up to its counts for a running one. */
  details(task: TaskRecord, part?: Part): Promise<TaskSummary & Pick<Task, 'results'>>
  /** Current results of a running task for these hosts; empty if the task is not running. */
  resultsOf(taskId: string, hostIds: Iterable<number>): Promise<TaskResult[]>
  /** Hosts whose results changed since the cursor; without one, returns the cursor to start from. */
  changedHosts(taskId: string, after?: number): Promise<{ hostIds: number[]; cursor: number }>
  /** Scripts of a task; an empty script if they are gone. */
  texts(task: TaskRecord): Promise<Texts>
  /** Parameters of a task; empty if they are gone with its results. */
  params(task: TaskRecord): Promise<TaskRecord['params']>
  /** Tasks waiting for this host to connect (contract §4: `pendingTasks`). */
  pendingFor(hostId: number): Promise<string[]>
  /** Number of such tasks, up to some seconds old: a hint whether to ask for them. */
  waitingOn(hostId: number): Promise<number>
  /** Current load: running tasks, executions in progress, executions waiting for their host. */
  load(): Promise<{ tasks: number; running: number; waiting: number }>
  /** Resolves when the task is final or not running. Rejects with `unavailable` on `stop`. */
  finished(taskId: string): Promise<void>
}

/** Adds damage to the stored output that was found after the results were written. */
function withDamages(results: TaskResult[], damages: ReadonlyMap<number, string>): TaskResult[] {
  if (damages.size === 0) return results
  return results.map((result) => {
    const damage = damages.get(result.hostId) ?? damages.get(0)
    if (damage === undefined) return result
    const error = [result.error, damage].filter((text) => text !== null).join('; ')
    return { ...result, outputComplete: false, error }
  })
}

export function createReads(parts: EngineParts): Reads & { stop(): void } {
  const { executions, store, results, outputs, hints, carried } = parts
  const stopped = new AbortController()

  /** Results of a running task: adds the stored output sizes and why a host is silent. */
  async function toResults(
    running: readonly RunningExecution[],
    queueSeconds: number | null,
  ): Promise<TaskResult[]> {
    const notes = await notesOf(
      parts,
      running.map(({ execution }) => execution),
      queueSeconds,
    )
    return running.map(({ execution, output: { stdoutBytes, stderrBytes } }) => {
      const result = resultOf(execution)
      if (isFinal(execution.status)) return result
      return { ...result, stdoutBytes, stderrBytes, error: notes.get(execution.id) ?? null }
    })
  }

  async function resultsNow(task: TaskRecord, part?: Part): Promise<TaskResult[]> {
    const running = await executions.page(task.id, part)
    return running.length > 0
      ? toResults(running, task.queueSeconds)
      : ((await results.read(task.id, part))?.results ?? [])
  }

  /** Newest record and its counts; reads again if the task ended in between. */
  async function counted(task: TaskRecord): Promise<[TaskRecord, Counts]> {
    const newest = (await store.get('tasks', task.id)) ?? task
    const counts = newest.counts ?? (await executions.counts(task.id))
    if (counts) return [newest, counts]
    const ended = (await store.get('tasks', task.id)) ?? newest
    return [ended, ended.counts ?? emptyCounts()]
  }

  async function summary(task: TaskRecord): Promise<TaskSummary> {
    const [newest, counts] = await counted(task)
    return { ...summaryOf(newest, counts), transfer: await carried.of(newest, counts) }
  }

  async function resultsOfTask(task: TaskRecord, part?: Part): Promise<TaskResult[]> {
    return withDamages(await resultsNow(task, part), outputs.damages(task.id))
  }

  return {
    summary,
    passed: (taskId) => carried.passed(taskId),
    results: resultsOfTask,
    async details(task, part) {
      // The summary comes first, so that a task ending in between is shown as it was just before.
      const current = await summary(task)
      const results = await resultsOfTask(task, part)
      const counts = part || current.status !== 'RUNNING' ? current.counts : countsOf(results)
      return { ...current, counts, results }
    },
    async resultsOf(taskId, hostIds) {
      const [running, task] = await Promise.all([
        executions.page(taskId, { hostIds: [...hostIds] }),
        store.get('tasks', taskId),
      ])
      return toResults(running, task?.queueSeconds ?? null)
    },
    async changedHosts(taskId, after = Number.POSITIVE_INFINITY) {
      const { executions: changed, cursor } = await executions.changes(taskId, after)
      return { hostIds: changed.map(({ hostId }) => hostId), cursor }
    },
    async texts(task) {
      const isHere = (task.gates ? task.gates.script : task.content) !== null
      return isHere ? textsOf(task) : ((await results.read(task.id)) ?? { script: '' })
    },
    async params(task) {
      return task.paramsInResults ? ((await results.read(task.id))?.params ?? {}) : task.params
    },
    async pendingFor(hostId) {
      const open = await executions.ofHost(hostId)
      return open.flatMap(({ execution }) => (execution.status === 'PENDING' ? [execution.taskId] : []))
    },
    waitingOn: (hostId) => executions.waitingOn(hostId),
    load: () => executions.load(),
    async finished(taskId) {
      const { signal } = stopped
      let wake = () => undefined as void
      const onHint = () => wake()
      const unsubscribe = hints.subscribe('task', taskId, onHint)
      const backstop = setInterval(onHint, lostHint)
      signal.addEventListener('abort', onHint)
      try {
        for (;;) {
          // Armed before the read, so that no later change is missed.
          const hinted = new Promise<void>((resolve) => {
            wake = resolve
          })
          if ((await store.get('tasks', taskId))?.status !== 'RUNNING') return
          if (signal.aborted)
            throw new RsmError(
              'unavailable',
              `The server is shutting down; task ${taskId} continues afterwards`,
              {
                retryAfter: 5,
              },
            )
          await hinted
        }
      } finally {
        unsubscribe()
        clearInterval(backstop)
        signal.removeEventListener('abort', onHint)
      }
    },
    stop: () => stopped.abort(),
  }
}
