import { RsmError } from '../../core/errors.ts'
import type { Task, TaskSummary } from '../../core/protocol/http/tasks.ts'
import { type Counts, countsOf, emptyCounts, isFinal, type TaskResult } from '../../core/tasks/task.ts'
import type { Carried } from '../files/carried.ts'
import { type Texts, textsOf } from '../storage/executions/ends.ts'
import { resultOf, summaryOf } from '../storage/executions/summary.ts'
import type { RunningExecution } from '../storage/ports/executions.ts'
import type { Part } from '../storage/ports/outputs.ts'
import type { TaskRecord } from '../storage/records/task.ts'
import type { EngineParts } from './parts.ts'
import { notesOf } from './scheduler/silence.ts'

/** Milliseconds until a hint that was lost is made up for. */
const lostHint = 1000

/** What is known of tasks, whichever server carries them out. */
export interface Reads {
  summary(task: TaskRecord): Promise<TaskSummary>
  /** By host: so much of its file has passed this server, while the task runs. */
  passed: Carried['passed']
  /** All results, or a part of them, in the order of the plan. */
  results(task: TaskRecord, part?: Part): Promise<Task['results']>
  /** A summary whose results agree with it: a final task has final results, those of a running one add up to its counts. */
  details(task: TaskRecord, part?: Part): Promise<TaskSummary & Pick<Task, 'results'>>
  /** What a running task has of these hosts now; nothing of one that does not run. */
  resultsOf(taskId: string, hostIds: Iterable<number>): Promise<TaskResult[]>
  /** The hosts of which a running task has something new since a cursor; without one: the cursor to begin with. */
  changedHosts(taskId: string, after?: number): Promise<{ hostIds: number[]; cursor: number }>
  /** What a task runs or ran; empty where that is gone. */
  texts(task: TaskRecord): Promise<Texts>
  /** The params of a task; empty where those of an ended one are gone. */
  params(task: TaskRecord): Promise<TaskRecord['params']>
  /** Tasks that wait for this host to connect (contract §4: `pendingTasks`). */
  pendingFor(hostId: number): Promise<string[]>
  /** How many those are, or were some seconds ago: a hint to ask for them. */
  waitingOn(hostId: number): Promise<number>
  /** How much there is to do: tasks that run, executions sent and not ended, executions that wait for their host. */
  load(): Promise<{ tasks: number; running: number; waiting: number }>
  /** Resolves when the task is final; at once when it does not run. Rejects with `unavailable` once `stop` is called. */
  finished(taskId: string): Promise<void>
}

/** What reads have found out about stored output since the results were written. */
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

  /** As results are shown while the task runs: with what is stored of the output, and why nothing comes. */
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
    const running = await executions.ofTask(task.id, part)
    return running.length > 0
      ? toResults(running, task.queueSeconds)
      : ((await results.read(task.id, part))?.results ?? [])
  }

  /** The newest record and its counts; reads again if the task ended in between. */
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
      // Read in this order, so that a task that ends in between is shown as it was just before.
      const current = await summary(task)
      const results = await resultsOfTask(task, part)
      const counts = part || current.status !== 'RUNNING' ? current.counts : countsOf(results)
      return { ...current, counts, results }
    },
    async resultsOf(taskId, hostIds) {
      const [running, task] = await Promise.all([
        executions.ofHosts(taskId, [...hostIds]),
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
          // Before the look: what changes after it is not missed.
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
