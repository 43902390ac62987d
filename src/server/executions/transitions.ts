import type { FinalStatus } from '../../core/task/task.ts'
import type { Execution, OutputSoFar, RunningExecution } from '../seams/executions.ts'

/** An execution that ends now, with what a host that never reported leaves open. */
export function ended(current: Execution, status: FinalStatus, at: string, error: string | null): Execution {
  // The clock may have been set back since it started.
  const completedAt = current.startedAt !== null && current.startedAt > at ? current.startedAt : at
  return { ...current, status, completedAt, error }
}

/** An execution whose end can't be known, with what is here of its output: how much there was nobody can tell. */
export function asLost(current: Execution, output: OutputSoFar, at: string, error: string): Execution {
  const { stdoutBytes, stderrBytes, truncated } = output
  const bytes = stdoutBytes + stderrBytes
  const sentence = bytes === 0 ? error : `${error}; ${bytes} bytes of its output are here`
  const lost = ended(current, 'LOST', at, sentence)
  return { ...lost, stdoutBytes, stderrBytes, truncated, outputComplete: false }
}

/** As it was before it was sent. */
export function asUnsent(current: Execution): Execution {
  const agent = { agentStoreId: null, agentInstanceId: null, agentJournal: null }
  return { ...current, status: 'PENDING', sentAt: null, startedAt: null, ...agent }
}

/** Its agent must not run it, so that it never left: the exit code is that of a shell that can't run a command. */
export function asRefused(current: Execution, at: string, error: string): Execution {
  return { ...ended(asUnsent(current), 'FAILED', at, error), exitCode: 126 }
}

/** What a cancel makes of it; null: nothing that it is not yet. */
export function asCancelled(current: Execution, output: OutputSoFar, at: string): Execution | null {
  if (current.status === 'PENDING') return ended(current, 'CANCELLED', at, null)
  // A base-protocol agent knows no cancel: what becomes of the script there can't be known.
  if (current.agentStoreId === null && !current.overSsh)
    return asLost(current, output, at, 'cancelled, but this agent can not end scripts')
  return current.cancelRequested ? null : { ...current, cancelRequested: true }
}

/** Whether its agent has ever said that it has it, or sent output of it. */
export function isReceived({ execution, output }: RunningExecution): boolean {
  return execution.named || output.storedSequence >= 0
}
