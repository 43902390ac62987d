import type { Counts, ResultStatus, TaskStatus } from '../protocol/http/tasks.ts'

type UnsettledStatus = 'PENDING' | 'RUNNING'
export type FinalStatus = Exclude<ResultStatus, UnsettledStatus>

/**
 * The one state machine of a result (contract §4): what each status may become. Final states never change. An end may
 * come while PENDING, as the agent may refuse to run it; RUNNING goes back to PENDING when the frame never left.
 */
const transitions: Record<ResultStatus, readonly ResultStatus[]> = {
  PENDING: ['RUNNING', 'SUCCESS', 'FAILED', 'TIMEOUT', 'CANCELLED', 'SKIPPED', 'UNREACHABLE', 'LOST'],
  RUNNING: ['PENDING', 'SUCCESS', 'FAILED', 'TIMEOUT', 'CANCELLED', 'LOST'],
  SUCCESS: [],
  FAILED: [],
  TIMEOUT: [],
  CANCELLED: [],
  SKIPPED: [],
  UNREACHABLE: [],
  LOST: [],
}

/** Whether a result may go from one status to another; an unfinished one may stay what it is. */
export function mayBecome(from: ResultStatus, to: ResultStatus): boolean {
  return transitions[from].includes(to) || (from === to && !isFinal(from))
}

export function isFinal(status: ResultStatus): status is FinalStatus {
  return status !== 'PENDING' && status !== 'RUNNING'
}

/** Failed is every end but SUCCESS, SKIPPED and CANCELLED (contract §4). */
export function isFailure(status: ResultStatus): boolean {
  return isFinal(status) && status !== 'SUCCESS' && status !== 'SKIPPED' && status !== 'CANCELLED'
}

export function emptyCounts(): Counts {
  return {
    PENDING: 0,
    RUNNING: 0,
    SUCCESS: 0,
    FAILED: 0,
    TIMEOUT: 0,
    CANCELLED: 0,
    SKIPPED: 0,
    UNREACHABLE: 0,
    LOST: 0,
  }
}

/**
 * What a task has come to, or null while a host is PENDING or RUNNING. A cancel that came when every host had already
 * succeeded changes nothing: the first on disk wins (contract §4).
 */
export function finalTaskStatus(
  counts: Readonly<Counts>,
  cancelRequested: boolean,
): Exclude<TaskStatus, 'RUNNING'> | null {
  if (counts.PENDING > 0 || counts.RUNNING > 0) return null
  let others = 0
  for (const [status, count] of Object.entries(counts)) if (status !== 'SUCCESS') others += count
  if (others === 0) return 'SUCCESS'
  return cancelRequested ? 'CANCELLED' : 'FAILED'
}
