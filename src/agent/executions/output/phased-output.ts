import type { Phase } from '../../../core/tasks/gates.ts'
import { type Chunk, ExecutionOutput, type OutputSummary } from './execution-output.ts'

interface Place {
  readonly phase: Phase
  readonly directory: string
}

export interface PastOutput extends Place {
  readonly chunks: number
}

/** Output of the current step, or of the only one. */
export interface CurrentOutput extends Place {
  readonly maxBytes: number
  readonly isFinished: boolean
}

/** Output of all steps of an execution, as one sequence; at most one finished step is open at a time. */
export class PhasedOutput {
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
