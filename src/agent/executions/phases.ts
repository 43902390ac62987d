import type { ScriptComplete } from '../../core/protocol/messages.ts'
import { nextStep } from '../../core/tasks/gates.ts'
import type { ThrottledErrors } from '../log.ts'
import { type Execution, notContinued, notRun } from './execution.ts'
import type { Passed } from './journaled.ts'
import type { RunnerOptions } from './runner-options.ts'
import { completeOf, passedOf } from './steps.ts'

/** Milliseconds before a failed write is retried. */
const againAfter = 1_000

interface PhasesOptions extends Pick<RunnerOptions, 'journal' | 'clock'> {
  readonly errors: ThrottledErrors
  readonly isStopped: () => boolean
  /** Its current step ended: stop watching it. */
  readonly over: (execution: Execution) => void
  readonly start: (execution: Execution) => void
  readonly ended: (execution: Execution, complete: ScriptComplete) => void
}

/** Runs gated executions step by step, with or without a link (contract §15). */
export class Phases {
  readonly #options: PhasesOptions

  constructor(options: PhasesOptions) {
    this.#options = options
  }

  /** Records the end of the current step, all output cut. Only then may the next step start. */
  passed(execution: Execution, complete: ScriptComplete): void {
    const { journal, clock, errors, isStopped, over } = this.#options
    if (isStopped()) return
    const { taskId, step } = execution
    let passed: Passed
    try {
      passed = passedOf(step, complete, execution.hasBegun ? execution.output().currentCount : 0)
      journal.append({ e: 'passed', taskId, ...passed })
    } catch (error) {
      errors.report('could not record the end of a phase; retrying', taskId, error)
      clock.after(againAfter, () => this.passed(execution, complete))
      return
    }
    over(execution)
    execution.pass(passed)
    this.advance(execution)
  }

  advance(execution: Execution): void {
    const { clock, start, ended } = this.#options
    const { taskId, gates, passed, isCancelled } = execution
    execution.stopWaiting?.()
    execution.stopWaiting = null
    const [first, ...rest] = passed
    if (!first) return start(execution)
    if (gates === null) {
      const error = 'the order with its verify or rollback script was lost from the disk'
      return ended(execution, notRun(taskId, new Date(clock.now()).toISOString(), { error }))
    }
    const next = nextStep(gates, passed, isCancelled)
    if (next === null) return ended(execution, completeOf(taskId, gates, [first, ...rest]))
    if (execution.permission === 'REFUSED')
      return ended(execution, { ...completeOf(taskId, gates, [first, ...rest]), ...notContinued })
    execution.step = { phase: next.phase, attempt: next.attempt }
    if (execution.permission === 'AWAITED') {
      execution.stopWaiting = () => {}
      return
    }
    if (next.wait === 0) return start(execution)
    execution.stopWaiting = clock.after(next.wait * 1000, () => {
      execution.stopWaiting = null
      start(execution)
    })
  }
}
