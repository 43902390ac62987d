import { isLaterPhase, type Phase } from '../../../core/tasks/gates.ts'
import type { FinalStatus } from '../../../core/tasks/task.ts'
import type { End, Execution, Offer, OutputSoFar, OwnEnd, RunningExecution } from '../ports/executions.ts'

/** Next state of an execution; null leaves it unchanged. */
export type Decide = (current: Execution, output: OutputSoFar) => Execution | null

/** Ends an execution now; fields that only its host reports keep their values. */
export function ended(current: Execution, status: FinalStatus, at: string, error: string | null): Execution {
  // The clock may have been set back since it started.
  const completedAt = current.startedAt !== null && current.startedAt > at ? current.startedAt : at
  return { ...current, status, completedAt, error }
}

export const neverStarted =
  (status: FinalStatus, at: string, error: (current: Execution) => string): Decide =>
  (current) =>
    current.status === 'PENDING' ? ended(current, status, at, error(current)) : null

export const asDue =
  (dueAt: string): Decide =>
  (current) =>
    current.status === 'PENDING' && current.dueAt === null ? { ...current, dueAt } : null

/**
 * Fields that sending sets, equal for all executions sent to this agent; without an agent, those over SSH.
 */
export function sentPart(at: string, agent?: Offer['agent']): Partial<Execution> {
  return { ...agent, status: 'RUNNING', sentAt: at, startedAt: at }
}

export const asBegun =
  (at: string): Decide =>
  (current) =>
    current.overSsh && current.dueAt !== null && current.status === 'PENDING'
      ? { ...current, ...sentPart(at) }
      : null

function asUnsent(current: Execution): Execution {
  const agent = { agentStoreId: null, agentInstanceId: null, agentJournal: null }
  return { ...current, status: 'PENDING', sentAt: null, startedAt: null, ...agent }
}

/** Requeues an execution whose frame was not sent, or ends it if it was cancelled. */
export const asReturned =
  (at: string): Decide =>
  (current) => {
    if (current.status !== 'RUNNING') return null
    return current.cancelRequested ? ended(current, 'CANCELLED', at, null) : asUnsent(current)
  }

/** Notes that the agent has confirmed the execution. */
export const asNamed: Decide = (current) =>
  current.status === 'RUNNING' && !current.named ? { ...current, named: true } : null

/** Moves to a later phase of the task; ignores any other. */
export const asReached =
  (phase: Phase, ofTask: readonly Phase[]): Decide =>
  (current) => {
    if (current.status !== 'RUNNING' || phase === 'SCRIPT' || !ofTask.includes(phase)) return null
    return isLaterPhase(phase, current.phase) ? { ...current, phase } : null
  }

export const asTruncated: Decide = (current) => (current.truncated ? null : { ...current, truncated: true })

/** Ends an execution that the agent must not run: exit code 126, as of a shell that cannot run a command. */
export const asRefused =
  (at: string, error: (current: Execution) => string): Decide =>
  (current) =>
    current.status === 'RUNNING'
      ? { ...ended(asUnsent(current), 'FAILED', at, error(current)), exitCode: 126 }
      : null

/** Ends an execution whose outcome is unknown; counts the stored output, because the total is unknown. */
export const asLost =
  (at: string, error: (current: Execution) => string): Decide =>
  (current, { stdoutBytes, stderrBytes, truncated }) => {
    if (current.status !== 'RUNNING') return null
    const bytes = stdoutBytes + stderrBytes
    const sentence =
      bytes === 0 ? error(current) : `${error(current)}; ${bytes} bytes of its output are stored`
    const lost = ended(current, 'LOST', at, sentence)
    return { ...lost, stdoutBytes, stderrBytes, truncated, outputComplete: false }
  }

const asAbandoned =
  (at: string): Decide =>
  (current, output) => {
    const error = () => 'the host was deleted'
    const decide = current.status === 'PENDING' ? neverStarted('UNREACHABLE', at, error) : asLost(at, error)
    return decide(current, output)
  }

/** Ends RUNNING work of a revoked agent; PENDING work and work over SSH stay. */
const asRevoked =
  (at: string): Decide =>
  (current, output) => {
    const error = () => 'its agent was revoked while it ran; its end is unknown'
    return current.overSsh ? null : asLost(at, error)(current, output)
  }

export const partings = { removed: asAbandoned, revoked: asRevoked }

/** Cancels an execution; with `pendingOnly` a running one continues. */
export const asCancelled =
  (at: string, how?: { pendingOnly: true; error: string }): Decide =>
  (current, output) => {
    if (current.status === 'PENDING') return ended(current, 'CANCELLED', at, how?.error ?? null)
    if (how) return null
    // A base-protocol agent cannot cancel, so the script's outcome is unknown.
    if (current.agentStoreId === null && !current.overSsh)
      return asLost(at, () => 'cancelled, but this agent cannot end scripts')(current, output)
    return current.cancelRequested ? null : { ...current, cancelRequested: true }
  }

export const asOwnEnd =
  ({ status, exitCode, error }: OwnEnd, at: string): Decide =>
  (current, { stdoutBytes, stderrBytes, truncated, incomplete }) => {
    if (current.status !== 'RUNNING' || !current.overSsh) return null
    const last = ended(current, status, at, error)
    const duration = Date.parse(last.completedAt ?? '') - Date.parse(last.startedAt ?? '')
    const output = { stdoutBytes, stderrBytes, truncated, outputComplete: !incomplete }
    return { ...last, ...output, exitCode, duration }
  }

export function endsById(ends: readonly End[]): {
  ids: string[]
  error: (execution: Execution) => string
} {
  const errors = new Map(ends.map(({ id, error }) => [id, error]))
  return { ids: [...errors.keys()], error: ({ id }) => errors.get(id) ?? '' }
}

/** Whether its agent has confirmed it or sent output of it. */
export function isReceived({ execution, output }: RunningExecution): boolean {
  return execution.named || output.storedSequence >= 0
}
