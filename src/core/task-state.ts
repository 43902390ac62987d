import type { Counts, ResultStatus, TaskStatus } from './protocol/http/tasks.ts'

/** What can befall one host's part of a task. */
export type ResultEvent =
  | 'start'
  | 'succeed'
  | 'fail'
  | 'time-out'
  | 'cancel'
  | 'skip'
  | 'give-up-waiting'
  | 'lose'

type UnsettledStatus = 'PENDING' | 'RUNNING'
export type FinalStatus = Exclude<ResultStatus, UnsettledStatus>

/**
 * The one state machine of a result (contract §4). What is not listed changes nothing: final states never change. An
 * end may come while PENDING: the frame that said the script had started can be lost with an agent that knows only the
 * seed, or the agent may refuse to run it.
 */
const transitions: Record<ResultStatus, Partial<Record<ResultEvent, ResultStatus>>> = {
  PENDING: {
    start: 'RUNNING',
    succeed: 'SUCCESS',
    fail: 'FAILED',
    'time-out': 'TIMEOUT',
    cancel: 'CANCELLED',
    skip: 'SKIPPED',
    'give-up-waiting': 'UNREACHABLE',
    lose: 'LOST',
  },
  RUNNING: {
    succeed: 'SUCCESS',
    fail: 'FAILED',
    'time-out': 'TIMEOUT',
    cancel: 'CANCELLED',
    lose: 'LOST',
  },
  SUCCESS: {},
  FAILED: {},
  TIMEOUT: {},
  CANCELLED: {},
  SKIPPED: {},
  UNREACHABLE: {},
  LOST: {},
}

/** The status after `event`, or null where it changes nothing. */
export function nextStatus(status: ResultStatus, event: ResultEvent): ResultStatus | null {
  return transitions[status][event] ?? null
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
