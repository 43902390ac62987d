import type { Containment } from '../hosts/host.ts'
import { type ScriptType, scriptTypes } from '../scripts/script-form.ts'
import type { Phase, RollbackResult, VerifyResult } from './gates.ts'

/** Types of tasks: a script of this type, or an operation without a script (contract §4). */
export const taskTypes = [...scriptTypes, 'INSTALL', 'UPGRADE', 'COPY', 'FETCH'] as const
export type TaskType = (typeof taskTypes)[number]

export function runsScript(type: TaskType): type is ScriptType {
  return (scriptTypes as readonly string[]).includes(type)
}

/** How a task proceeds over its hosts (contract §4). */
export const strategies = ['PARALLEL', 'SEQUENTIAL', 'ROLLING'] as const
export type Strategy = (typeof strategies)[number]

/** Hosts at a time: a number, a percentage, or a list for canaries whose last entry repeats (contract §4). */
export type BatchSize = number | string | (number | string)[]
export type MaxFailures = number | string

export const taskStatuses = ['RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED'] as const
export type TaskStatus = (typeof taskStatuses)[number]

export const resultStatuses = [
  'PENDING',
  'RUNNING',
  'SUCCESS',
  'FAILED',
  'TIMEOUT',
  'CANCELLED',
  'SKIPPED',
  'UNREACHABLE',
  'LOST',
] as const
export type ResultStatus = (typeof resultStatuses)[number]
/** Hosts in each status; statuses without a host are 0. */
export type Counts = Record<ResultStatus, number>

export const streams = ['stdout', 'stderr'] as const
export type Stream = (typeof streams)[number]

/** A process that survived TERM and KILL; `command` is its program's name. */
export interface Survivor {
  pid: number
  command: string
}

/** Result of a host that arrived after its final state (contract §4). */
export interface LateResult {
  status: ResultStatus
  exitCode: number | null
  signal: string | null
  completedAt: string
}

/** One host's part of a task, as shown, and as stored once the task has ended. */
export interface TaskResult {
  hostId: number
  hostname: string
  status: ResultStatus
  exitCode: number | null
  signal: string | null
  startedAt: string | null
  completedAt: string | null
  /** Milliseconds. */
  duration: number | null
  stdoutBytes: number
  stderrBytes: number
  truncated: boolean
  outputComplete: boolean
  error: string | null
  /** By which a timeout or a cancel finds its processes; null if nothing was started, or unknown. */
  containment: Containment | null
  /** Processes that could not be ended, 20 at most; null if a process may have escaped unseen. */
  survivors: Survivor[] | null
  /** For a copy: whether it changed the host, or would have; null if unknown, and for other types (contract §13). */
  changed: boolean | null
  /** Set while RUNNING, else null. */
  phase: Phase | null
  /** Results of verification and rollback, if they ran (contract §15). */
  verify: VerifyResult | null
  rollback: RollbackResult | null
  lateResult: LateResult | null
}

type UnsettledStatus = 'PENDING' | 'RUNNING'
export type FinalStatus = Exclude<ResultStatus, UnsettledStatus>

/**
 * State machine of a result (contract §4): the statuses that may follow each. Final states never change. A result may
 * end while PENDING, because the agent may refuse to run it. RUNNING returns to PENDING if the frame was never sent.
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

/** Whether a result may change its status this way; an unfinished one may keep it. */
export function mayBecome(from: ResultStatus, to: ResultStatus): boolean {
  return transitions[from].includes(to) || (from === to && !isFinal(from))
}

export function isFinal(status: ResultStatus): status is FinalStatus {
  return status !== 'PENDING' && status !== 'RUNNING'
}

/** Every end but SUCCESS, SKIPPED and CANCELLED is a failure (contract §4). */
export function isFailure(status: ResultStatus): boolean {
  return isFinal(status) && status !== 'SUCCESS' && status !== 'SKIPPED' && status !== 'CANCELLED'
}

export function emptyCounts(): Counts {
  return Object.fromEntries(resultStatuses.map((status) => [status, 0])) as Counts
}

export function countsOf(results: Iterable<{ readonly status: ResultStatus }>): Counts {
  const counts = emptyCounts()
  for (const { status } of results) counts[status]++
  return counts
}

/**
 * Final status of a task, or null while a host is PENDING or RUNNING. A cancel after every host has succeeded changes
 * nothing: the first on disk wins (contract §4).
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
