import type { ExecutionState, ScriptComplete } from '../../core/protocol/messages.ts'
import type { ScriptOrder } from '../../core/protocol/orders.ts'
import { firstStep, type Step } from '../../core/tasks/gates.ts'
import type { Clock } from '../clock.ts'
import type { JournaledExecution, Passed, Started } from './journaled.ts'
import { type PastOutput, PhasedOutput } from './output/phased-output.ts'
import type { Run } from './run.ts'
import { placeOf } from './steps.ts'

/** Milliseconds that a link must stand before permission is given: by then an agent elsewhere has taken it. */
const undisputedFor = 60_000

/** An execution that the server has not yet acknowledged as complete. */
export class Execution {
  readonly taskId: string
  readonly directory: string
  state: ExecutionState = 'QUEUED'
  /** Only what a loss of power can't undo is named to the server: from then on it is never sent again. */
  isDurable = false
  isCancelled = false
  /** The server's permission to continue here; null: not needed, because no other agent has its files. */
  permission: 'AWAITED' | 'GIVEN' | 'REFUSED' | null = null
  /** The server of this link knows nothing of it: it is not told any more. */
  isForgotten = false
  /** The order of one with gates; null where the disk has lost it. */
  gates: ScriptOrder | null = null
  isGated = false
  /** The step that is under way or comes next. */
  step: Step = firstStep
  /** The steps that are over; of an execution with gates only. */
  readonly passed: Passed[] = []
  /** Ends the wait for the next step. */
  stopWaiting: (() => void) | null = null
  /** Of the current step; so is `run`. */
  started: Started | null = null
  run: Run | null = null
  complete: ScriptComplete | null = null
  /** The current step writes, or has written. */
  #isWriting = false
  #output: PhasedOutput | null = null

  constructor(taskId: string, directory: string) {
    this.taskId = taskId
    this.directory = directory
  }

  /** Where the current step has its files. */
  get place(): string {
    return placeOf(this.directory, this.step)
  }

  /** Whether it has output, or will have: one of its scripts has begun. */
  get hasBegun(): boolean {
    return this.#isWriting || this.passed.length > 0
  }

  /** The current step writes from now on. */
  writes(): void {
    if (this.#isWriting) return
    this.close()
    this.#isWriting = true
  }

  /** Opened when first asked for, so that a backlog of ended ones holds no descriptors. */
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

  /** What the server is told at HELLO; -1 without output. */
  get lastSequence(): number {
    if (this.complete) return this.complete.lastSequence ?? -1
    return this.hasBegun ? this.output().count - 1 : -1
  }

  /** Its current step is over. */
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
 * Executions whose files another agent may have, too. Nothing of them starts before a server has answered the HELLO that
 * names them, and the link has stood for a minute without another agent that takes it (P48).
 */
export class Permissions {
  readonly #clock: Clock
  readonly #settled: (execution: Execution) => void
  readonly #timers = new Map<Execution, () => void>()

  /** `settled` hears of each that was given or refused. */
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

  /** The link is gone: the next one begins again. */
  unlinked(): void {
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
  }
}

/** The end of an execution of which nothing more may start here. */
export const notContinued = {
  status: 'LOST',
  exitCode: 255,
  signal: null,
  error:
    'not continued: the host was restarted or the agent directory was copied, and another agent may have continued it',
} as const

/** The end of what never ran: refused, or cancelled before its turn. */
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
 * What is left to say of an execution that has had its one start and was let go: its end, or LOST where a full disk
 * kept that out of the journal. Null for one that has not begun.
 */
export function knownEnd(record: JournaledExecution, at: string): ScriptComplete | null {
  const { taskId, started, complete, acknowledgedAt } = record
  // Its output went when it was acknowledged: a server that asks again (from a backup) must not wait for it.
  if (complete) return { ...complete, lastSequence: -1 }
  if (!started && acknowledgedAt === undefined) return null
  const error = 'it has run before, and how it ended is not in the journal of the agent'
  const lost = notRun(taskId, at, { exitCode: 255, error })
  return { ...lost, status: 'LOST', startedAt: started?.startedAt ?? at }
}
