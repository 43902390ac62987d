import { isLaterPhase, type Phase } from '../../../core/tasks/gates.ts'
import type { FinalStatus } from '../../../core/tasks/task.ts'
import type { End, Execution, Offer, OutputSoFar, OwnEnd, RunningExecution } from '../ports/executions.ts'

/** What a step makes of an execution as it is now; null: it stays as it is. */
export type Decide = (current: Execution, output: OutputSoFar) => Execution | null

/** An execution that ends now, with what a host that never reported leaves open. */
export function ended(current: Execution, status: FinalStatus, at: string, error: string | null): Execution {
  // The clock may have been set back since it started.
  const completedAt = current.startedAt !== null && current.startedAt > at ? current.startedAt : at
  return { ...current, status, completedAt, error }
}

/** One whose turn has not come, or that has not been sent, ends without a start. */
export const neverStarted =
  (status: FinalStatus, at: string, error: (current: Execution) => string): Decide =>
  (current) =>
    current.status === 'PENDING' ? ended(current, status, at, error(current)) : null

export const asDue =
  (dueAt: string): Decide =>
  (current) =>
    current.status === 'PENDING' && current.dueAt === null ? { ...current, dueAt } : null

/** What being sent changes, the same for all that are sent to this agent; without one: what goes over SSH. */
export function sentPart(at: string, agent?: Offer['agent']): Partial<Execution> {
  return { ...agent, status: 'RUNNING', sentAt: at, startedAt: at }
}

export const asBegun =
  (at: string): Decide =>
  (current) =>
    current.overSsh && current.dueAt !== null && current.status === 'PENDING'
      ? { ...current, ...sentPart(at) }
      : null

/** As it was before it was sent. */
function asUnsent(current: Execution): Execution {
  const agent = { agentStoreId: null, agentInstanceId: null, agentJournal: null }
  return { ...current, status: 'PENDING', sentAt: null, startedAt: null, ...agent }
}

/** Its frame never left. */
export const asReturned =
  (at: string): Decide =>
  (current) => {
    if (current.status !== 'RUNNING') return null
    return current.cancelRequested ? ended(current, 'CANCELLED', at, null) : asUnsent(current)
  }

/** Its agent has said that it has it. */
export const asNamed: Decide = (current) =>
  current.status === 'RUNNING' && !current.named ? { ...current, named: true } : null

/** Moves to a later phase that the task has; ignores any other. */
export const asReached =
  (phase: Phase, ofTask: readonly Phase[]): Decide =>
  (current) => {
    if (current.status !== 'RUNNING' || phase === 'SCRIPT' || !ofTask.includes(phase)) return null
    return isLaterPhase(phase, current.phase) ? { ...current, phase } : null
  }

/** There is more output than is taken. */
export const asTruncated: Decide = (current) => (current.truncated ? null : { ...current, truncated: true })

/** Its agent must not run it, so that it never left: the exit code is that of a shell that can't run a command. */
export const asRefused =
  (at: string, error: (current: Execution) => string): Decide =>
  (current) =>
    current.status === 'RUNNING'
      ? { ...ended(asUnsent(current), 'FAILED', at, error(current)), exitCode: 126 }
      : null

/** Its end can't be known; with what is here of its output: how much there was nobody can tell. */
export const asLost =
  (at: string, error: (current: Execution) => string): Decide =>
  (current, { stdoutBytes, stderrBytes, truncated }) => {
    if (current.status !== 'RUNNING') return null
    const bytes = stdoutBytes + stderrBytes
    const sentence = bytes === 0 ? error(current) : `${error(current)}; ${bytes} bytes of its output are here`
    const lost = ended(current, 'LOST', at, sentence)
    return { ...lost, stdoutBytes, stderrBytes, truncated, outputComplete: false }
  }

/** Of a host that is being deleted. */
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

/** Reasons to abandon what a host has. */
export const partings = { removed: asAbandoned, revoked: asRevoked }

/** What a cancel makes of it; with `pendingOnly` what runs goes on. */
export const asCancelled =
  (at: string, how?: { pendingOnly: true; error: string }): Decide =>
  (current, output) => {
    if (current.status === 'PENDING') return ended(current, 'CANCELLED', at, how?.error ?? null)
    if (how) return null
    // A base-protocol agent knows no cancel: what becomes of the script there can't be known.
    if (current.agentStoreId === null && !current.overSsh)
      return asLost(at, () => 'cancelled, but this agent cannot end scripts')(current, output)
    return current.cancelRequested ? null : { ...current, cancelRequested: true }
  }

/** What the server itself did has ended. */
export const asOwnEnd =
  ({ status, exitCode, error }: OwnEnd, at: string): Decide =>
  (current, { stdoutBytes, stderrBytes, truncated, incomplete }) => {
    if (current.status !== 'RUNNING' || !current.overSsh) return null
    const last = ended(current, status, at, error)
    const duration = Date.parse(last.completedAt ?? '') - Date.parse(last.startedAt ?? '')
    const output = { stdoutBytes, stderrBytes, truncated, outputComplete: !incomplete }
    return { ...last, ...output, exitCode, duration }
  }

/** Ids of what ends, and why each does. */
export function endsById(ends: readonly End[]): {
  ids: string[]
  error: (execution: Execution) => string
} {
  const errors = new Map(ends.map(({ id, error }) => [id, error]))
  return { ids: [...errors.keys()], error: ({ id }) => errors.get(id) ?? '' }
}

/** Whether its agent has ever said that it has it, or sent output of it. */
export function isReceived({ execution, output }: RunningExecution): boolean {
  return execution.named || output.storedSequence >= 0
}
