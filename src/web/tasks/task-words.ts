import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { GatePhase, GateStatus, Phase } from '../../core/tasks/gates.ts'
import type { ResultStatus, TaskResult } from '../../core/tasks/task.ts'

const statusWords: Record<PhaseState['status'], string> = {
  PENDING: 'waiting',
  RUNNING: 'running',
  SUCCESS: 'succeeded',
  FAILED: 'failed',
  TIMEOUT: 'timed out',
  CANCELLED: 'cancelled',
  SKIPPED: 'skipped',
  UNREACHABLE: 'unreachable',
  LOST: 'lost',
  ENDED: 'ended',
  'NOT RUN': 'not run',
}

/** State of a phase on a host; ENDED if only a later phase is known. */
export interface PhaseState {
  readonly phase: Phase
  readonly status: ResultStatus | GateStatus | 'ENDED' | 'NOT RUN'
  /** Null if there is none, or it is unknown. */
  readonly exitCode: number | null
  /** Attempts, for VERIFY only. */
  readonly attempts?: number
}

type Gates = Pick<TaskSummary, 'verify' | 'rollback'>
type Result = Pick<TaskResult, 'status' | 'exitCode' | 'phase' | 'verify' | 'rollback'>

export const hasGates = ({ verify, rollback }: Gates): boolean => verify !== null || rollback !== null

function scriptState({ status, exitCode, phase, verify }: Result): Omit<PhaseState, 'phase'> {
  // VERIFY runs only after the script has succeeded.
  if (verify !== null || phase === 'VERIFY') return { status: 'SUCCESS', exitCode: 0 }
  // The rollback may follow a failure of the script or of its verification.
  if (phase === 'ROLLBACK') return { status: 'ENDED', exitCode: null }
  return { status, exitCode }
}

function gateState(
  phase: GatePhase,
  result: Result,
  found: Omit<PhaseState, 'phase'> | null,
): Omit<PhaseState, 'phase'> {
  if (found !== null) return found
  if (result.phase === phase) return { status: 'RUNNING', exitCode: null }
  if (result.phase === 'ROLLBACK') return { status: 'ENDED', exitCode: null }
  const isOpen = result.status === 'PENDING' || result.status === 'RUNNING'
  return { status: isOpen ? 'PENDING' : 'NOT RUN', exitCode: null }
}

/** The phases of a host in order; empty without gates (contract §15). */
export function phasesOf(gates: Gates, result: Result): PhaseState[] {
  if (!hasGates(gates)) return []
  const { verify, rollback } = result
  return [
    { phase: 'SCRIPT', ...scriptState(result) },
    ...(gates.verify === null ? [] : [{ phase: 'VERIFY' as const, ...gateState('VERIFY', result, verify) }]),
    ...(gates.rollback === null
      ? []
      : [{ phase: 'ROLLBACK' as const, ...gateState('ROLLBACK', result, rollback) }]),
  ]
}

/** Exit code of a failed phase; empty for others. */
function exitText({ status, exitCode }: PhaseState): string {
  return exitCode === null || status === 'SUCCESS' || status === 'TIMEOUT' ? '' : `exit ${exitCode}`
}

/** `failed, exit 3, 2 tries`. */
export function phaseText(state: PhaseState): string {
  const { status, attempts = 1 } = state
  return [statusWords[status], exitText(state), attempts > 1 ? `${attempts} tries` : '']
    .filter(Boolean)
    .join(', ')
}

/** `exit 3`, `timed out`: short form for lists. */
export const shortPhaseText = (state: PhaseState): string => exitText(state) || statusWords[state.status]

export function nameOf({
  scriptName,
  firstLine,
  type,
}: Pick<TaskSummary, 'scriptName' | 'firstLine' | 'type'>): string {
  return scriptName ?? firstLine ?? `${type.toLowerCase()} command`
}

/** `3 success, 1 failed`. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([status, count]) => `${count} ${status.toLowerCase()}`)
    .join(', ')
}

/** How a host's part ended, besides its status. */
export function endText({ status, exitCode, signal, error }: TaskResult): string {
  if (error !== null) return error
  if (signal !== null) return `ended by ${signal}`
  if (status === 'TIMEOUT' || exitCode === null) return ''
  return `exit ${exitCode}`
}
