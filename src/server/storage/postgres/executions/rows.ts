import type { Execution, OutputSoFar, RunningExecution } from '../../ports/executions.ts'
import type { Progress } from '../../ports/outputs.ts'

/** Of `rsm.executions e`: what a `Row` holds. */
export const columns = 'e.rec, e.rev, e.epoch, e.out_seq, e.stdout_bytes, e.stderr_bytes, e.frames'

export interface Row {
  rec: Execution
  rev: number
  epoch: number | null
  out_seq: number
  stdout_bytes: number
  stderr_bytes: number
  frames: number
}

/** An execution as it was stored when it was read or written last. */
export interface Stored {
  readonly execution: Execution
  /** How often its record has changed. */
  readonly rev: number
  /** Of the link, or the member, that has it. */
  readonly epoch: number | null
  readonly progress: Progress
}

export function storedOf({
  rec,
  rev,
  epoch,
  out_seq: lastSequence,
  stdout_bytes,
  stderr_bytes,
  frames,
}: Row): Stored {
  const progress = { lastSequence, stdoutBytes: stdout_bytes, stderrBytes: stderr_bytes, frames }
  return { execution: rec, rev, epoch, progress }
}

export function outputOf({ execution, progress }: Stored): OutputSoFar {
  const { lastSequence: storedSequence, stdoutBytes, stderrBytes } = progress
  return { storedSequence, stdoutBytes, stderrBytes, truncated: execution.truncated, incomplete: false }
}

export const shown = (stored: Stored): RunningExecution => ({
  execution: stored.execution,
  output: outputOf(stored),
})

/** The two halves of an execution's id. */
export function keyOf(id: string): { taskId: string; hostId: number } {
  const slash = id.lastIndexOf('/')
  return { taskId: id.slice(0, slash), hostId: Number(id.slice(slash + 1)) }
}

export const idOf = (taskId: string, hostId: number): string => `${taskId}/${hostId}`
