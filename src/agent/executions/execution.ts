import type { ExecutionState, ScriptComplete } from '../../core/protocol/messages.ts'
import type { ScriptOrder } from '../../core/protocol/orders.ts'
import { firstStep, type Phase, type Step } from '../../core/tasks/gates.ts'
import type { Clock } from '../clock.ts'
import type { JournaledExecution, Passed, Started } from './journaled.ts'
import { type Chunk, ExecutionOutput, type OutputSummary } from './output/execution-output.ts'
import type { Run } from './run.ts'
import { placeOf } from './steps.ts'

/** Milliseconds a link must stay up before permission is given, so that another agent can claim it. */
const undisputedFor = 60_000

/** An execution that the server has not yet acknowledged as complete. */
export class Execution {
  readonly taskId: string
  readonly directory: string
  state: ExecutionState = 'QUEUED'
  /** True once a power loss cannot undo it. Only then reported to the server, which never sends it again. */
  isDurable = false
  isCancelled = false
  /** The server's permission to continue here; null: not needed, because no other agent has its files. */
  permission: 'AWAITED' | 'GIVEN' | 'REFUSED' | null = null
  /** The linked server does not know it: stop reporting it. */
  isForgotten = false
  /** Order of a gated execution; null if the file is lost. */
  gates: ScriptOrder | null = null
  isGated = false
  step: Step = firstStep
  /** Finished steps of a gated execution. */
  readonly passed: Passed[] = []
  stopWaiting: (() => void) | null = null
  /** Start of the current step, like `run`. */
  started: Started | null = null
  run: Run | null = null
  complete: ScriptComplete | null = null
  #isWriting = false
  #output: PhasedOutput | null = null

  constructor(taskId: string, directory: string) {
    this.taskId = taskId
    this.directory = directory
  }

  get place(): string {
    return placeOf(this.directory, this.step)
  }

  /** Whether one of its scripts began, so that output exists or will. */
  get hasBegun(): boolean {
    return this.#isWriting || this.passed.length > 0
  }

  writes(): void {
    if (this.#isWriting) return
    this.close()
    this.#isWriting = true
  }

  /** Opened on first use, so that a backlog of ended executions holds no descriptors. */
  output(): PhasedOutput {
    this.#output ??= new PhasedOutput(this.passed.map(this.#past), this.#current())
    return this.#output
  }

  readonly #past = (step: Passed): PastOutput => ({ ...step, directory: placeOf(this.directory, step) })

  #current() {
    if (this.passed.length > 0 && !this.#isWriting) return null
    const { phase } = this.step
    const maxBytes = this.started?.maxOutputBytes ?? 0
    return { phase, directory: this.place, maxBytes, isFinished: this.state === 'EXITED' }
  }

  /** Last sequence, as HELLO reports it; -1 without output. */
  get lastSequence(): number {
    if (this.complete) return this.complete.lastSequence ?? -1
    return this.hasBegun ? this.output().count - 1 : -1
  }

  pass(passed: Passed): void {
    this.close()
    this.passed.push(passed)
    this.run = null
    this.#isWriting = false
  }

  ended(complete: ScriptComplete): void {
    this.state = 'EXITED'
    this.run = null
    this.complete = complete
  }

  close(): void {
    this.#output?.close()
    this.#output = null
  }
}

/**
 * Executions whose files another agent may have too. They start only after a server answered the HELLO that
 * lists them, and the link stayed up for a minute without another agent claiming it (P48).
 */
export class Permissions {
  readonly #clock: Clock
  readonly #settled: (execution: Execution) => void
  readonly #timers = new Map<Execution, () => void>()

  /** Calls `settled` for each execution that is permitted or refused. */
  constructor(clock: Clock, settled: (execution: Execution) => void) {
    this.#clock = clock
    this.#settled = settled
  }

  answered(execution: Execution, isRefused: boolean): void {
    if (execution.permission !== 'AWAITED') return
    this.#timers.get(execution)?.()
    this.#timers.delete(execution)
    if (isRefused) {
      execution.permission = 'REFUSED'
      return this.#settled(execution)
    }
    const settle = () => {
      this.#timers.delete(execution)
      if (execution.permission !== 'AWAITED' || execution.state === 'EXITED') return
      execution.permission = 'GIVEN'
      this.#settled(execution)
    }
    this.#timers.set(execution, this.#clock.after(undisputedFor, settle))
  }

  /** The link is down: the next link starts the wait again. */
  unlinked(): void {
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
  }
}

/** Result of an execution that must not continue on this host. */
export const notContinued = {
  status: 'LOST',
  exitCode: 255,
  signal: null,
  error:
    'not continued: the host restarted or the agent directory was copied; another agent may have continued it',
} as const

/** Result of an execution that never ran: refused, or cancelled while queued. */
export function notRun(
  taskId: string,
  at: string,
  end: { status?: 'FAILED' | 'CANCELLED'; exitCode?: number; error?: string },
): ScriptComplete {
  const status = end.status ?? 'FAILED'
  return {
    taskId,
    exitCode: end.exitCode ?? (status === 'CANCELLED' ? 143 : 126),
    duration: 0,
    startedAt: at,
    completedAt: at,
    status,
    signal: null,
    error: end.error ?? null,
    lastSequence: -1,
    stdoutBytes: 0,
    stderrBytes: 0,
    truncated: false,
    containment: null,
    survivors: [],
  }
}

/**
 * Result of an execution that was already started and released: its end, or LOST if a full disk kept the end
 * out of the journal. Null if it has not begun.
 */
export function knownEnd(record: JournaledExecution, at: string): ScriptComplete | null {
  const { taskId, started, complete, acknowledgedAt } = record
  // Its output was deleted on acknowledgement: a server that asks again (from a backup) must not wait for it.
  if (complete) return { ...complete, lastSequence: -1 }
  if (!started && acknowledgedAt === undefined) return null
  const error = "it ran before, but the agent's journal does not have its result"
  const lost = notRun(taskId, at, { exitCode: 255, error })
  return { ...lost, status: 'LOST', startedAt: started?.startedAt ?? at }
}

interface Place {
  readonly phase: Phase
  readonly directory: string
}

interface PastOutput extends Place {
  readonly chunks: number
}

/** Output of the current step, or of the only one. */
interface CurrentOutput extends Place {
  readonly maxBytes: number
  readonly isFinished: boolean
}

/** Output of all steps of an execution, as one sequence; at most one finished step is open at a time. */
class PhasedOutput {
  readonly #past: readonly PastOutput[]
  readonly #phase: Phase
  readonly #current: ExecutionOutput | null
  readonly #before: number
  #opened: { readonly of: PastOutput; readonly output: ExecutionOutput } | null = null
  #isDone: boolean

  constructor(past: readonly PastOutput[], current: CurrentOutput | null) {
    this.#past = past
    this.#before = past.reduce((sum, { chunks }) => sum + chunks, 0)
    this.#phase = current?.phase ?? 'SCRIPT'
    this.#current = current && new ExecutionOutput(current.directory, current.maxBytes, current.isFinished)
    this.#isDone = current?.isFinished !== false
  }

  /** Chunks cut so far; the last sequence is one less. */
  get count(): number {
    return this.#before + this.currentCount
  }

  get currentCount(): number {
    return this.#current?.count ?? 0
  }

  read(sequence: number): Chunk & { phase: Phase } {
    if (this.#current && sequence >= this.#before)
      return { ...this.#current.read(sequence - this.#before), phase: this.#phase }
    let first = 0
    for (const past of this.#past) {
      if (sequence < first + past.chunks)
        return { ...this.#open(past).read(sequence - first), phase: past.phase }
      first += past.chunks
    }
    throw new RangeError(`chunk ${sequence} not found`)
  }

  /** Like ExecutionOutput.cut; false if no step is running. */
  cut(isDue = true): boolean {
    return !this.#isDone && this.#current?.cut(isDue) === true
  }

  bound(): void {
    if (!this.#isDone) this.#current?.bound()
  }

  /** Cuts the remaining output of an ended step; later output is ignored. */
  finish(): OutputSummary {
    const nothing = { stdoutBytes: 0, stderrBytes: 0, truncated: false }
    const summary = this.#current?.finish() ?? nothing
    this.#isDone = true
    return { ...summary, lastSequence: this.count - 1 }
  }

  close(): void {
    this.#current?.close()
    this.#opened?.output.close()
    this.#opened = null
  }

  #open(past: PastOutput): ExecutionOutput {
    if (this.#opened?.of === past) return this.#opened.output
    this.#opened?.output.close()
    this.#opened = null
    // The limit no longer matters for finished output.
    const output = new ExecutionOutput(past.directory, 0, true)
    this.#opened = { of: past, output }
    return output
  }
}
