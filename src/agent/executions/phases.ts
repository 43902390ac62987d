import type { ScriptComplete } from '../../core/protocol/messages.ts'
import { nextStep } from '../../core/tasks/gates.ts'
import type { ThrottledErrors } from '../log.ts'
import { type Execution, notContinued, notRun } from './execution.ts'
import type { Passed } from './journaled.ts'
import type { RunnerOptions } from './runner-options.ts'
import { completeOf, passedOf } from './steps.ts'

/** Milliseconds after which is tried again what the disk refused. */
const againAfter = 1_000

interface PhasesOptions extends Pick<RunnerOptions, 'journal' | 'clock'> {
  readonly errors: ThrottledErrors
  readonly isStopped: () => boolean
  /** Its present step is over: nothing of it is watched any more. */
  readonly over: (execution: Execution) => void
  /** Its next step is due. */
  readonly start: (execution: Execution) => void
  readonly ended: (execution: Execution, complete: ScriptComplete) => void
}

/** Leads executions with gates from one step to the next, with a link or without (contract §15). */
export class Phases {
  readonly #options: PhasesOptions

  constructor(options: PhasesOptions) {
    this.#options = options
  }

  /** The present step has ended, with no more output than is cut. Nothing follows before that is in the journal. */
  passed(execution: Execution, complete: ScriptComplete): void {
    const { journal, clock, errors, isStopped, over } = this.#options
    if (isStopped()) return
    const { taskId, step } = execution
    let passed: Passed
    try {
      passed = passedOf(step, complete, execution.hasBegun ? execution.output().currentCount : 0)
      journal.append({ e: 'passed', taskId, ...passed })
    } catch (error) {
      errors.report('the next phase of an execution waits', taskId, error)
      clock.after(againAfter, () => this.passed(execution, complete))
      return
    }
    over(execution)
    execution.pass(passed)
    this.advance(execution)
  }

  /** What follows on the steps that are over. */
  advance(execution: Execution): void {
    const { clock, start, ended } = this.#options
    const { taskId, gates, passed, isCancelled } = execution
    execution.stopWaiting?.()
    execution.stopWaiting = null
    const [first, ...rest] = passed
    if (!first) return start(execution)
    if (gates === null) {
      const error = 'what was to follow on its script was lost from the disk'
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
