import type { Stream } from '../../core/protocol/http/logs.ts'
import type { Counts, TaskResult, TaskSummary } from '../../core/protocol/http/tasks.ts'
import { Plan } from '../../core/task/plan.ts'
import { emptyCounts, isFinal } from '../../core/task/task-state.ts'
import type { ExecutionRecord, TaskRecord } from '../seams/records.ts'
import type { AgentLink } from './agent-link.ts'

/** A piece of output that is taken in and not yet durable. */
export interface PendingOutput {
  readonly sequence: number
  /** What was the last one taken in before it. */
  readonly before: number
  readonly stream: Stream
  readonly bytes: number
}

/** What is known of an execution beyond its record: volatile, made again after a restart. */
export interface Live {
  /** The last sequence taken in; what is durable of it is `storedSequence`. */
  lastSequence: number
  storedSequence: number
  /** What lies between the two, in the order in which it was taken in. */
  readonly pending: Set<PendingOutput>
  stdoutBytes: number
  stderrBytes: number
  /** Frames that its output came in. */
  frames: number
  /** There was more than the server takes: what comes now is acknowledged and let go. */
  truncated: boolean
  /** The agent has said that it has it. */
  received: boolean
  /** Some of it could not be stored and will not come again. */
  incomplete: boolean
  /** Monotonic milliseconds of the last word about it. */
  lastWord: number
  /** The last append under way. */
  appended: Promise<void>
  acknowledging: boolean
  /** An end that came before all output up to its `lastSequence` was stored: it settles when that is. */
  early: EarlyEnd | null
}

export interface EarlyEnd {
  readonly link: AgentLink
  /** Monotonic milliseconds when it came, or the last output since. */
  at: number
  /** More output is stored: settles when that was the last. */
  progressed(): void
  /** Settles without what has not come. */
  giveUp(): void
}

/** A running task: its record, its executions in the order of the plan, and what follows from them. */
export class TaskRun {
  task: TaskRecord
  plan: Plan
  readonly executions: ExecutionRecord[]
  readonly positions = new Map<number, number>()
  readonly counts: Counts = emptyCounts()
  readonly finished: Promise<void>
  markFinished: () => void = () => undefined
  /** Serialises the steps of the strategy. */
  stepping: Promise<void> = Promise.resolve()
  pauseTimer: NodeJS.Timeout | null = null
  /** Monotonic milliseconds until which no host counts as unreachable: agents return to a restarted server one by one. */
  graceUntil = 0
  readonly #live = new Map<number, Live>()
  /** Why a host that has not ended says nothing just now; shown as its `error` until it does. */
  readonly #notes = new Map<number, string>()

  constructor(task: TaskRecord, executions: ExecutionRecord[]) {
    this.task = task
    this.executions = executions
    this.plan = this.#planFromRecords()
    for (const [position, execution] of executions.entries()) {
      this.positions.set(execution.hostId, position)
      this.counts[execution.status]++
    }
    this.finished = new Promise((resolve) => {
      this.markFinished = resolve
    })
  }

  /** After a decision that could not be carried out: what is on disk decides anew. */
  planAnew(): void {
    this.plan = this.#planFromRecords()
  }

  #planFromRecords(): Plan {
    const standings = this.executions.map(({ status, dueAt }) => ({ status, hadTurn: dueAt !== null }))
    return new Plan(this.task, standings, this.#pauseUntil())
  }

  /**
   * Until when the pause lasts, if there is one now (the plan knows). A server that was killed after the last end of a
   * batch, and before it noted the pause, must not begin it anew: it counts from that end.
   */
  #pauseUntil(): number | null {
    const { pauseUntil, pauseSeconds } = this.task
    if (pauseUntil !== null) return Date.parse(pauseUntil)
    if (pauseSeconds === 0) return null
    const ends = this.executions.flatMap(({ completedAt }) => (completedAt ? [Date.parse(completedAt)] : []))
    return ends.reduce<number | null>((last, end) => Math.max(last ?? 0, end + pauseSeconds * 1000), null)
  }

  ofHost(hostId: number): ExecutionRecord | undefined {
    const position = this.positions.get(hostId)
    return position === undefined ? undefined : this.executions[position]
  }

  /** Takes a record that has become durable. */
  apply(next: ExecutionRecord): void {
    const before = this.executions[next.position]
    if (before) this.counts[before.status]--
    this.counts[next.status]++
    this.executions[next.position] = next
  }

  live(position: number, monotonic: number): Live {
    let live = this.#live.get(position)
    if (!live) {
      live = {
        lastSequence: -1,
        storedSequence: -1,
        pending: new Set(),
        stdoutBytes: 0,
        stderrBytes: 0,
        frames: 0,
        truncated: this.executions[position]?.truncated === true,
        received: false,
        incomplete: false,
        lastWord: monotonic,
        appended: Promise.resolve(),
        acknowledging: false,
        early: null,
      }
      this.#live.set(position, live)
    }
    return live
  }

  /** What is stored of an execution whose agent never said how much there was: its result must not claim less. */
  stored(position: number): Pick<ExecutionRecord, 'stdoutBytes' | 'stderrBytes' | 'truncated'> {
    const { stdoutBytes = 0, stderrBytes = 0, truncated = false } = this.#live.get(position) ?? {}
    return { stdoutBytes, stderrBytes, truncated }
  }

  /** Sets or clears (null) what is said of a host that has not ended; answers whether that is news. */
  note(position: number, text: string | null): boolean {
    if ((this.#notes.get(position) ?? null) === text) return false
    if (text === null) this.#notes.delete(position)
    else this.#notes.set(position, text)
    return true
  }

  result(position: number): TaskResult | undefined {
    const execution = this.executions[position]
    const live = this.#live.get(position)
    if (!execution) return undefined
    const result = resultOf(execution)
    if (isFinal(execution.status)) return result
    const error = this.#notes.get(position) ?? null
    const bytes = live ? { stdoutBytes: live.stdoutBytes, stderrBytes: live.stderrBytes } : {}
    return { ...result, ...bytes, error }
  }

  results(): TaskResult[] {
    return this.executions.map((execution, position) => this.result(position) ?? resultOf(execution))
  }
}

export function resultOf(execution: ExecutionRecord): TaskResult {
  const { hostId, hostname, status, exitCode, signal, startedAt, completedAt, duration } = execution
  const { stdoutBytes, stderrBytes, truncated, outputComplete, error, lateResult } = execution
  return {
    hostId,
    hostname,
    status,
    exitCode,
    signal,
    startedAt,
    completedAt,
    duration,
    stdoutBytes,
    stderrBytes,
    truncated,
    outputComplete,
    error,
    containment: execution.containment ?? null,
    survivors: execution.survivors === undefined ? [] : execution.survivors,
    lateResult,
  }
}

/** A task as lists show it; `counts` of a running one come from its run. */
export function summaryOf(task: TaskRecord, counts: Counts): TaskSummary {
  return {
    taskId: task.id,
    status: task.status,
    hostCount: task.hostCount,
    counts: { ...counts },
    strategy: task.strategy,
    batchSize: task.batchSize,
    scriptId: task.scriptId,
    scriptVersion: task.scriptVersion,
    scriptName: task.scriptName,
    firstLine: task.firstLine ?? null,
    type: task.type,
    params: task.params,
    timeout: task.timeout,
    runAs: task.runAs,
    limits: task.limits ?? null,
    clusterId: task.clusterId,
    retryOf: task.retryOf ?? null,
    createdBy: task.createdBy,
    createdAt: task.createdAt,
    startedAt: task.startedAt,
    completedAt: task.completedAt,
    duration: task.duration,
  }
}
