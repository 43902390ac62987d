import { isFinal } from '../../../../core/tasks/task.ts'
import { LiveOutput } from '../../executions/live-output.ts'
import type { RunningExecution } from '../../ports/executions.ts'
import { type Stored, withStoredOutput } from './rows.ts'

/** An execution that a link of this server has, or that the server itself does over SSH, and what only this server knows of it. */
export interface ClaimedRow {
  stored: Stored
  /** Of the link or the member: what is written for the execution is guarded by it. */
  readonly epoch: number
  output: LiveOutput
  /** The last sequence that was given to be stored. */
  queued: number
  /** The agent has said that it has it, which may not be stored yet. */
  isReceived: boolean
  /** A read that others wait for, too; null: none is under way. */
  reading: Promise<unknown> | null
  /** What has become of it after a piece of its output was not stored; null: all were. */
  torn: Promise<boolean> | null
}

/** Claimed rows of this server, as it wrote or read them last. Others may have changed them since. */
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

  /** It was marked for this server just now, or taken over: its output goes on from what is stored. */
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
    // It may have been read before it was written or taken over here: both numbers only rise.
    if (!own || stored.rev < own.stored.rev || (stored.epoch ?? 0) < own.epoch) return
    if (isFinal(status) || status === 'PENDING' || stored.epoch !== own.epoch) this.#all.delete(id)
    else own.stored = stored
  }

  /** Its task is gone. */
  drop(id: string): void {
    this.#all.delete(id)
  }

  /** What is stored, as far as this server knows better. */
  withOutput(stored: Stored): RunningExecution {
    const own = this.#all.get(stored.execution.id)
    if (!own || own.epoch !== stored.epoch) return withStoredOutput(stored)
    const newer = own.stored.rev > stored.rev ? own.stored : stored
    const { execution } = newer
    return { execution: own.isReceived ? { ...execution, named: true } : execution, output: own.output }
  }
}
