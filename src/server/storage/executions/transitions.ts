import { isLaterPhase, type Phase } from '../../../core/tasks/gates.ts'
import type { FinalStatus } from '../../../core/tasks/task.ts'
import type { LinkClaim, Member } from '../ports/cluster.ts'
import type {
  End,
  Execution,
  Guard,
  Offer,
  OutputSoFar,
  OwnEnd,
  RunningExecution,
  Transition,
} from '../ports/executions.ts'

/** Next state of an execution; null leaves it unchanged. */
export type Decide = (current: Execution, output: OutputSoFar) => Execution | null

type Ids = readonly string[]
type Ends = readonly End[]
/** Epoch of the link or member that has the executions; null for any. */
type Marked = Pick<LinkClaim, 'epoch'> | null
type DecideAt = Transition['decide']
/** Like `DecideAt`, with the error for this execution. */
type DecideWith = (...of: [...Parameters<DecideAt>, error: string]) => Execution | null
type Kind = Omit<Transition, 'which' | 'decide'>

export const asDue = (owner: Member, ids: Ids): Transition =>
  transition({ guard: { owner }, point: 'turn', unlessHeld: true }, ids, (current, _, dueAt) =>
    current.status === 'PENDING' && current.dueAt === null ? { ...current, dueAt } : null,
  )

export const asSkipped = (owner: Member, ids: Ids, error: string): Transition =>
  transition({ guard: { owner }, point: 'skipped', unlessHeld: true }, ids, (current, _, at) =>
    current.status === 'PENDING' ? ended(current, 'SKIPPED', at, error) : null,
  )

/** Ends due executions that were not sent. */
export const asUnreachable = (owner: Member, ends: Ends): Transition =>
  ending({ guard: { owner }, point: 'unreachable', unlessHeld: true }, ends, unreachable)

/**
 * Marks due executions over SSH as started; the owner of the task runs them. The mark is durable before the
 * server connects, so that a crash makes them LOST, not started twice.
 */
export const asBegun = (owner: Member, ids: Ids): Transition =>
  transition({ guard: { owner, claims: true }, point: 'sent', unlessHeld: true }, ids, (current, _, at) =>
    current.overSsh && current.dueAt !== null && current.status === 'PENDING'
      ? { ...current, ...sentPart(at) }
      : null,
  )

/**
 * Fields that sending sets, equal for all executions sent to this agent; without an agent, those over SSH.
 */
export function sentPart(at: string, agent?: Offer['agent']): Partial<Execution> {
  return { ...agent, status: 'RUNNING', sentAt: at, startedAt: at }
}

/** Ends an execution over SSH. */
export const asOwnEnd = (owner: Member, id: string, { status, exitCode, error }: OwnEnd): Transition =>
  transition({ guard: { owner }, point: 'settled' }, [id], (current, output, at) => {
    if (current.status !== 'RUNNING' || !current.overSsh) return null
    const { stdoutBytes, stderrBytes, truncated, incomplete } = output
    const last = ended(current, status, at, error)
    const duration = Date.parse(last.completedAt ?? '') - Date.parse(last.startedAt ?? '')
    return { ...last, stdoutBytes, stderrBytes, truncated, outputComplete: !incomplete, exitCode, duration }
  })

/** Requeues executions whose frames were not sent; ends those that were cancelled. */
export const asReturned = (marked: LinkClaim, ids: Ids): Transition =>
  transition({ guard: { marked }, point: 'returned' }, ids, (current, _, at) => {
    if (current.status !== 'RUNNING') return null
    return current.cancelRequested ? ended(current, 'CANCELLED', at, null) : unsent(current)
  })

/** Notes that the agent has confirmed the executions. */
export const asNamed = (marked: Marked, ids: Ids): Transition =>
  transition({ guard: marked && { marked }, point: 'named' }, ids, (current) =>
    current.status === 'RUNNING' && !current.named ? { ...current, named: true } : null,
  )

/**
 * Ends executions that were marked as sent, but whose frames were not sent, because they must not run. Exit
 * code 126, as of a shell that cannot run a command.
 */
export const asRefused = (marked: LinkClaim, ends: Ends): Transition =>
  ending({ guard: { marked }, point: 'settled' }, ends, (current, _, at, error) =>
    current.status === 'RUNNING' ? { ...ended(unsent(current), 'FAILED', at, error), exitCode: 126 } : null,
  )

/** Ends executions that were sent and whose outcome is unknown. */
export const asLost = (by: Extract<Guard, { owner: Member } | { link: LinkClaim }>, ends: Ends): Transition =>
  ending({ guard: by, point: 'lost' }, ends, lost)

/** Ends every execution of a removed host. */
export const asRemoved = (hostId: number): Transition =>
  transition({ guard: null, point: null }, { hostId }, (current, output, at) => {
    const end = current.status === 'PENDING' ? unreachable : lost
    return end(current, output, at, 'the host was deleted')
  })

/** Ends RUNNING work of a revoked agent; PENDING work and work over SSH stay. */
export const asRevoked = (hostId: number): Transition =>
  transition({ guard: null, point: null }, { hostId }, (current, output, at) =>
    current.overSsh
      ? null
      : lost(current, output, at, 'its agent was revoked while it ran; its end is unknown'),
  )

/** Moves to a later phase of the task; ignores any other. */
export const asReached = (marked: Marked, id: string, phase: Phase, ofTask: readonly Phase[]): Transition =>
  transition({ guard: marked && { marked }, point: null }, [id], (current) => {
    if (current.status !== 'RUNNING' || phase === 'SCRIPT' || !ofTask.includes(phase)) return null
    return isLaterPhase(phase, current.phase) ? { ...current, phase } : null
  })

export const asTruncated = (marked: Marked, id: string): Transition =>
  transition({ guard: marked && { marked }, point: null }, [id], (current) =>
    current.truncated ? null : { ...current, truncated: true },
  )

/** Cancels an execution; with `pendingOnly` a running one continues. */
export const asCancelled =
  (at: string, how?: { pendingOnly: true; error: string }): Decide =>
  (current, output) => {
    if (current.status === 'PENDING') return ended(current, 'CANCELLED', at, how?.error ?? null)
    if (how) return null
    // A base-protocol agent cannot cancel, so the script's outcome is unknown.
    if (current.agentStoreId === null && !current.overSsh)
      return lost(current, output, at, 'cancelled, but this agent cannot end scripts')
    return current.cancelRequested ? null : { ...current, cancelRequested: true }
  }

/** Ends an execution now; fields that only its host reports keep their values. */
function ended(current: Execution, status: FinalStatus, at: string, error: string | null): Execution {
  // The clock may have been set back since it started.
  const completedAt = current.startedAt !== null && current.startedAt > at ? current.startedAt : at
  return { ...current, status, completedAt, error }
}

const unreachable: DecideWith = (current, _, at, error) =>
  current.status === 'PENDING' ? ended(current, 'UNREACHABLE', at, error) : null

/** Counts the stored output, because the total is unknown. */
const lost: DecideWith = (current, { stdoutBytes, stderrBytes, truncated }, at, error) => {
  if (current.status !== 'RUNNING') return null
  const bytes = stdoutBytes + stderrBytes
  const sentence = bytes === 0 ? error : `${error}; ${bytes} bytes of its output are stored`
  const output = { stdoutBytes, stderrBytes, truncated, outputComplete: false }
  return { ...ended(current, 'LOST', at, sentence), ...output }
}

function unsent(current: Execution): Execution {
  const agent = { agentStoreId: null, agentInstanceId: null, agentJournal: null }
  return { ...current, status: 'PENDING', sentAt: null, startedAt: null, ...agent }
}

function transition(kind: Kind, which: Transition['which'], decide: DecideAt): Transition {
  return { ...kind, which, decide }
}

function ending(kind: Kind, ends: Ends, decide: DecideWith): Transition {
  const errors = new Map(ends.map(({ id, error }) => [id, error]))
  return transition(kind, [...errors.keys()], (...of) => decide(...of, errors.get(of[0].id) ?? ''))
}

/** Whether the agent has confirmed the execution or sent output of it. */
export function isReceived({ execution, output }: RunningExecution): boolean {
  return execution.named || output.storedSequence >= 0
}

/** Order in which executions are sent to a host: longest due first. */
export const byDueAt = (one: Execution, other: Execution): number =>
  (one.dueAt ?? '') < (other.dueAt ?? '') || (one.dueAt === other.dueAt && one.id < other.id) ? -1 : 1
