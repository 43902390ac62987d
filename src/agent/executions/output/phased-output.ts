import type { Phase } from '../../../core/tasks/gates.ts'
import { type Chunk, ExecutionOutput, type OutputSummary } from './execution-output.ts'

/** Where the scripts of one step write. */
interface Place {
  readonly phase: Phase
  readonly directory: string
}

/** What a step has left that is over. */
export interface PastOutput extends Place {
  readonly chunks: number
}

/** Where a step writes now, or the only one has written. */
export interface CurrentOutput extends Place {
  readonly maxBytes: number
  readonly isFinished: boolean
}

/** The output of all steps of an execution in one row of chunks; of those that are over one is open at a time. */
export class PhasedOutput {
  readonly #past: readonly PastOutput[]
  readonly #phase: Phase
  readonly #current: ExecutionOutput | null
  /** Chunks of the steps that are over. */
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

  /** Of those the ones of the step that is not over. */
  get currentCount(): number {
    return this.#current?.count ?? 0
  }

  /** A chunk that has been cut. */
  read(sequence: number): Chunk & { phase: Phase } {
    if (this.#current && sequence >= this.#before)
      return { ...this.#current.read(sequence - this.#before), phase: this.#phase }
    let first = 0
    for (const past of this.#past) {
      if (sequence < first + past.chunks)
        return { ...this.#open(past).read(sequence - first), phase: past.phase }
      first += past.chunks
    }
    throw new RangeError(`there is no chunk ${sequence} yet`)
  }

  /** As ExecutionOutput.cut; false where no step is under way. */
  cut(isDue = true): boolean {
    return !this.#isDone && this.#current?.cut(isDue) === true
  }

  bound(): void {
    if (!this.#isDone) this.#current?.bound()
  }

  /** Cuts all that is left of a step that has ended; what is written later is not cut any more. */
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
    // How much it may hold has been settled when it was finished.
    const output = new ExecutionOutput(past.directory, 0, true)
    this.#opened = { of: past, output }
    return output
  }
}
