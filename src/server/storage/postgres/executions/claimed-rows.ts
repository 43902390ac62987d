import { isFinal } from '../../../../core/tasks/task.ts'
import { LiveOutput } from '../../executions/live-output.ts'
import type { RunningExecution } from '../../ports/executions.ts'
import { type Stored, withStoredOutput } from './rows.ts'

/** An execution that this server has, by a link or over SSH, with state that only this server knows. */
export interface ClaimedRow {
  stored: Stored
  /** Epoch of the link or member; guards writes for the execution. */
  readonly epoch: number
  output: LiveOutput
  /** Last sequence handed to `outputs`, stored or not. */
  queued: number
  /** Whether the agent has confirmed receipt, which may not be stored yet. */
  isReceived: boolean
  /** Read in flight, shared by its callers; null if none. */
  reading: Promise<unknown> | null
  /** Reread after a chunk was not stored: whether the execution has ended. Null if all were stored. */
  torn: Promise<boolean> | null
}

/** Cache of the claimed rows of this server; other servers may have changed them since. */
export class ClaimedRows {
  readonly #all = new Map<string, ClaimedRow>()

  get size(): number {
    return this.#all.size
  }

  get(id: string): ClaimedRow | undefined {
    return this.#all.get(id)
  }

  values(): Iterable<ClaimedRow> {
    return this.#all.values()
  }

  /** Adds a row that was just claimed or taken over; its output continues after what is stored. */
  take(stored: Stored): ClaimedRow {
    const { execution, epoch, progress } = stored
    const output = new LiveOutput(progress, execution.truncated)
    const own: ClaimedRow = {
      stored,
      epoch: epoch ?? 0,
      output,
      queued: progress.lastSequence,
      isReceived: execution.named,
      reading: null,
      torn: null,
    }
    this.#all.set(execution.id, own)
    return own
  }

  /** Updates the claimed row; evicts it if it ended, was requeued or went to another link. */
  note(stored: Stored): void {
    const { id, status } = stored.execution
    const own = this.#all.get(id)
    // Ignore a stale row: `rev` and `epoch` never decrease.
    if (!own || stored.rev < own.stored.rev || (stored.epoch ?? 0) < own.epoch) return
    if (isFinal(status) || status === 'PENDING' || stored.epoch !== own.epoch) this.#all.delete(id)
    else own.stored = stored
  }

  drop(id: string): void {
    this.#all.delete(id)
  }

  /** Merges a stored row with newer state of this server. */
  withOutput(stored: Stored): RunningExecution {
    const own = this.#all.get(stored.execution.id)
    if (!own || own.epoch !== stored.epoch) return withStoredOutput(stored)
    const newer = own.stored.rev > stored.rev ? own.stored : stored
    const { execution } = newer
    return { execution: own.isReceived ? { ...execution, named: true } : execution, output: own.output }
  }
}
