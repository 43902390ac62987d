import { RsmError } from '../../core/errors.ts'
import type { RestoreConfirmed } from '../../core/protocol/control.ts'
import type { Task, TaskResult, TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { RunMark, ScriptComplete, ScriptOutput, ScriptReceived } from '../../core/protocol/messages.ts'
import { emptyCounts, isFinal } from '../../core/task/task-state.ts'
import type { ExecutionRecord, TaskRecord } from '../seams/records.ts'
import type { Transaction } from '../seams/store.ts'
import type { AgentLink } from './agent-link.ts'
import { abandonHost, cancelTask } from './cancel.ts'
import { createDispatcher } from './dispatcher.ts'
import { createHeld, type OpenRestore, type Witness } from './held.ts'
import { createLinks } from './links.ts'
import { createReceiver } from './receiver.ts'
import { createState, type EngineDependencies, returnGrace } from './state.ts'
import { createStrategy } from './strategy.ts'
import { summaryOf, TaskRun } from './task-run.ts'

const sweepInterval = 250
const silenceSweepInterval = 5000

/** Owns running tasks: plan → send → receive → settle (docs/inside/architecture.md). */
export interface Engine {
  /** Takes up every task that a former process left running. */
  recover(): Promise<void>
  /** Writes a new task inside a transaction of the caller's; `begin` starts it once that is durable. */
  put(tx: Transaction, task: TaskRecord, executions: readonly ExecutionRecord[]): void
  begin(task: TaskRecord, executions: readonly ExecutionRecord[]): void
  cancel(taskId: string): Promise<void>
  abandonHost(hostId: number): Promise<void>
  /** Resolves when the task is final; at once when it is not running. Rejects with `unavailable` at `stop`. */
  finished(taskId: string): Promise<void>
  summary(task: TaskRecord): TaskSummary
  results(task: TaskRecord): Promise<Task['results']>
  /** What a running task has of these hosts now; nothing of one that does not run. */
  resultsOf(taskId: string, hostIds: Iterable<number>): TaskResult[]
  script(task: TaskRecord): Promise<string>
  /** Tasks that wait for this host to connect (contract §4: `pendingTasks`). */
  pendingFor(hostId: number): string[]
  linked(link: AgentLink): Promise<void>
  unlinked(link: AgentLink): void
  received(link: AgentLink, frameId: string, received: ScriptReceived): Promise<void>
  output(link: AgentLink, frameId: string, output: ScriptOutput, json?: Uint8Array): Promise<void>
  complete(link: AgentLink, frameId: string, complete: ScriptComplete): Promise<void>
  /** What agents are to remember of this server; null while it has to be kept from them. */
  mark(): RunMark | null
  /** What an agent remembers of it, said outside of a HELLO. */
  witnessed(witness: Witness, mark: RunMark): void
  /** The restore from a backup that waits for a person. */
  restore(): OpenRestore | null
  /** Lets what is held start, or cancels it. Rejects with `conflict` where nothing is held. */
  confirmRestore(cancelPending: boolean): Promise<RestoreConfirmed>
  /** How much there is to do: tasks that run, executions sent and not ended, executions that wait for their host. */
  load(): { tasks: number; running: number; waiting: number }
  /** Takes no further step; what is under way ends. */
  stop(): Promise<void>
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

export function createEngine(deps: EngineDependencies): Engine {
  const state = createState(deps, (run, final) => {
    strategy.step(run)
    for (const { hostId } of final) {
      const lane = state.lane(hostId)
      if (lane.waiting.length > 0) guard(dispatcher.pump(hostId), 'pump')
    }
  })
  const dispatcher = createDispatcher(state)
  const strategy = createStrategy(state, dispatcher)
  const receiver = createReceiver(state)
  const held = createHeld(state, release)
  const links = createLinks(state, dispatcher, held)
  const background = new Set<Promise<void>>()

  function guard(work: Promise<void>, what: string): void {
    const watched = work
      .catch((error: unknown) => {
        if (!state.stopping) state.log.error({ err: error }, `engine: ${what} failed`)
      })
      .finally(() => background.delete(watched))
    background.add(watched)
  }

  const timers = [
    setInterval(() => guard(dispatcher.sweep(), 'sweep of waiting executions'), sweepInterval),
    setInterval(() => guard(links.sweep(), 'sweep of silent executions'), silenceSweepInterval),
  ]
  for (const timer of timers) timer.unref()

  async function recoverTask(task: TaskRecord): Promise<void> {
    const found = await state.store.find('executions', 'taskId', task.id)
    const executions = found.toSorted((a, b) => a.position - b.position)
    const run = new TaskRun(task, executions)
    const now = state.clock.monotonic()
    run.graceUntil = now + returnGrace
    const stored = await state.outputs.progress(task.id)
    for (const [position, execution] of executions.entries()) {
      if (isFinal(execution.status)) continue
      const progress = stored.get(execution.hostId)
      if (progress)
        Object.assign(run.live(position, now), { ...progress, storedSequence: progress.lastSequence })
      const lane = state.lane(execution.hostId)
      if (execution.status === 'RUNNING') lane.inFlight.add(execution.id)
      else if (execution.dueAt !== null && !state.held.has(task.id))
        lane.waiting.push({ run, position, since: now })
    }
    state.runs.set(task.id, run)
    strategy.step(run)
  }

  /** What was held goes on where it stood. */
  function release(run: TaskRun): void {
    const now = state.clock.monotonic()
    run.graceUntil = now + returnGrace
    run.planAnew()
    for (const { status, dueAt, hostId, position } of run.executions)
      if (status === 'PENDING' && dueAt !== null)
        state.lane(hostId).waiting.push({ run, position, since: now })
    strategy.step(run)
  }

  return {
    async recover() {
      await held.load()
      for (const task of await state.store.find('tasks', 'status', 'RUNNING')) await recoverTask(task)
      held.loaded()
    },
    put(tx, task, executions) {
      tx.put('tasks', task)
      for (const execution of executions) tx.put('executions', execution)
    },
    begin(task, executions) {
      const run = new TaskRun(task, [...executions])
      state.runs.set(task.id, run)
      state.hints.publish('task', { id: task.id, hostId: null, change: 'created' })
      strategy.step(run)
    },
    async cancel(taskId) {
      strategy.step(await cancelTask(state, taskId))
    },
    abandonHost: (hostId) => abandonHost(state, hostId),
    async finished(taskId) {
      const run = state.runs.get(taskId)
      await run?.finished
      if (run?.task.status === 'RUNNING')
        throw new RsmError('unavailable', `The server is shutting down; task ${taskId} goes on after it`, {
          retryAfter: 5,
        })
    },
    summary(task) {
      const run = task.status === 'RUNNING' ? state.runs.get(task.id) : undefined
      return summaryOf(run?.task ?? task, run?.counts ?? task.counts ?? emptyCounts())
    },
    async results(task) {
      const run = task.status === 'RUNNING' ? state.runs.get(task.id) : undefined
      const results = run ? run.results() : ((await state.results.read(task.id))?.results ?? [])
      return withDamages(results, state.outputs.damages(task.id))
    },
    resultsOf(taskId, hostIds) {
      const run = state.runs.get(taskId)
      return [...hostIds].flatMap((hostId) => run?.result(run.positions.get(hostId) ?? -1) ?? [])
    },
    async script(task) {
      return task.content ?? (await state.results.read(task.id))?.script ?? ''
    },
    pendingFor: (hostId) => dispatcher.waitingFor(hostId),
    linked: (link) => links.linked(link),
    unlinked: (link) => links.unlinked(link),
    received: (link, frameId, received) => receiver.received(link, frameId, received),
    output: (link, frameId, output, json) => receiver.output(link, frameId, output, json),
    complete: (link, frameId, complete) => receiver.complete(link, frameId, complete),
    mark: () => (held.isUncertain ? null : state.serverRuns.mark()),
    witnessed(witness, mark) {
      const judged = held.judge(witness, mark)
      if (judged !== true)
        guard(
          judged.then(() => undefined),
          'judging what an agent remembers',
        )
    },
    restore: () => held.open,
    confirmRestore: (cancelPending) => held.confirm(cancelPending),
    load() {
      let running = 0
      let waiting = 0
      for (const lane of state.lanes.values()) {
        running += lane.inFlight.size
        waiting += lane.waiting.length
      }
      return { tasks: state.runs.size, running, waiting }
    },
    async stop() {
      state.stopping = true
      for (const timer of timers) clearInterval(timer)
      const stepping = [...state.runs.values()].map((run) => {
        run.markFinished()
        if (run.pauseTimer) clearTimeout(run.pauseTimer)
        return run.stepping
      })
      await Promise.allSettled([...stepping, ...background])
      await state.receipts.close()
    },
  }
}
