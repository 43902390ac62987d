import type { ScriptComplete } from '../../core/protocol/messages.ts'
import { cancelOrder, reportOf, sweepParts } from '../files/order.ts'
import type { ThrottledErrors } from '../log.ts'
import { limitReached } from '../processes/limits.ts'
import { isOriginal, type ProcessId } from '../processes/machine.ts'
import { failureOf } from '../upgrade/order.ts'
import type { Execution } from './execution.ts'
import { dropOrder } from './execution-queue.ts'
import type { FrozenOutput } from './frozen-output.ts'
import type { JournaledExecution, Started } from './journaled.ts'
import type { OutputSummary } from './output/execution-output.ts'
import { findOutcome, treeOf, untilGone } from './recovery.ts'
import { type Outcome, Run } from './run.ts'
import type { RunnerOptions } from './runner-options.ts'

/** A full disk must not fail a running script or undo an end: the next agent finds out. */
export const refusesLine = 'could not write to the journal'
/** Milliseconds until a refused call is retried. */
const againAfter = 1_000

interface SupervisionOptions
  extends Pick<RunnerOptions, 'journal' | 'clock' | 'machine' | 'containment' | 'log'> {
  readonly errors: ThrottledErrors
  readonly frozen: FrozenOutput
  readonly running: (execution: Execution) => void
  readonly ended: (execution: Execution, complete: ScriptComplete) => void
  readonly failed: (execution: Execution, error: unknown) => void
}

/** Watches running scripts, of this agent or an earlier one, to their end. */
export class Supervision {
  readonly #options: SupervisionOptions
  #isStopped = false

  constructor(options: SupervisionOptions) {
    this.#options = options
  }

  stop(): void {
    this.#isStopped = true
  }

  /** `began` in monotonic milliseconds. */
  begin(
    execution: Execution,
    started: Started,
    root: ProcessId | null,
    exited: Promise<void>,
    began: number,
  ): void {
    if (this.#isStopped) return
    const { journal, clock, containment, log, errors } = this.#options
    const { taskId, place: directory } = execution
    const run = new Run({
      tree: treeOf(started, root, directory),
      containment,
      directory,
      clock,
      exited,
      elapsed: clock.monotonic() - began,
      startUptime: started.uptime,
      timeout: started.timeout,
      ending: (reason) => {
        log('INFO', 'ending a process tree', { taskId, reason })
        errors.attempt(refusesLine, taskId, () => journal.append({ e: 'ending', taskId, reason }))
        if (started.isOfFiles) cancelOrder(directory)
      },
    })
    execution.writes()
    execution.run = run
    this.#options.running(execution)
    if (execution.isCancelled) run.end('CANCELLED')
    run.ended
      .then((result) => this.#settled(execution, started, result))
      .catch((error: unknown) => this.#options.failed(execution, error))
  }

  /**
   * Recovers the step that an earlier agent began, if any. Never rejects: a failure (EMFILE) is retried,
   * while the agent serves others.
   */
  async takeUp(execution: Execution, record: JournaledExecution): Promise<void> {
    const { started } = execution
    if (this.#isStopped || started === null) return
    const { clock, errors } = this.#options
    try {
      await this.#findOut(execution, record, started)
    } catch (error) {
      errors.report('could not recover an execution; retrying', execution.taskId, error)
      clock.after(againAfter, () => void this.takeUp(execution, record))
    }
  }

  async #findOut(execution: Execution, record: JournaledExecution, started: Started): Promise<void> {
    const { machine, clock, containment, errors } = this.#options
    if (!execution.isGated) dropOrder(execution, errors)
    if (started.isOfFiles && record.ending) cancelOrder(execution.directory)
    const isStopped = () => this.#isStopped
    const found = await findOutcome(record, started, execution.place, {
      machine,
      containment,
      clock,
      isStopped,
    })
    if (this.#isStopped) return
    execution.writes()
    if ('outcome' in found) return this.#settled(execution, started, found.outcome)
    const elapsed = Math.max(0, (machine.uptime() - started.uptime) * 1000)
    const exited = untilGone(found.root, clock, isStopped)
    this.begin(execution, started, found.root, exited, clock.monotonic() - elapsed)
    if (record.ending) execution.run?.resumeEnding(record.ending)
  }

  /** Removes partial files of a killed copy before its end is reported. */
  async #settled(execution: Execution, started: Started, result: Outcome): Promise<void> {
    if (this.#isStopped) return
    if (started.isOfFiles && isOriginal(started, execution.place))
      await sweepParts(execution.directory, this.#options.log)
    this.#finish(execution, started, result)
  }

  #finish(execution: Execution, started: Started, result: Outcome): void {
    if (this.#isStopped) return
    const completedAt = new Date(Date.parse(started.startedAt) + result.duration).toISOString()
    const summary = this.#summary(execution)
    if (!summary) {
      // A full disk recovers, and the result is known: it counts as running until its output is all cut.
      this.#options.clock.after(againAfter, () => this.#finish(execution, started, result))
      return
    }
    const { frozen } = this.#options
    if (execution.run) frozen.add(execution.place, execution.run.writers)
    else frozen.find([execution.place])
    const { changed, error = null } = this.#ownReport(execution, started)
    this.#options.ended(execution, {
      taskId: execution.taskId,
      startedAt: started.startedAt,
      completedAt,
      ...result,
      ...summary,
      error: limitReached(started.limited, result) ?? error ?? result.error,
      ...(changed === undefined ? {} : { changed }),
    })
  }

  /** Result as reported by a child process of rsm. */
  #ownReport(
    { directory }: Execution,
    { isUpgrade, isOfFiles }: Started,
  ): { error?: string | null; changed?: boolean } {
    if (isOfFiles) return reportOf(directory)
    return isUpgrade ? { error: failureOf(directory) } : {}
  }

  /** Null while the disk refuses to cut the rest of the output. */
  #summary(execution: Execution): OutputSummary | null {
    try {
      return execution.output().finish()
    } catch (error) {
      this.#options.errors.report(
        'could not finish the output of an execution; retrying',
        execution.taskId,
        error,
      )
      return null
    }
  }
}
