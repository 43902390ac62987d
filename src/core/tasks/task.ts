import type { Containment } from '../hosts/host.ts'
import { type ScriptType, scriptTypes } from '../scripts/script-form.ts'
import type { Phase, RollbackResult, VerifyResult } from './gates.ts'

/** What a task does on its hosts: runs a script of this type, or what needs no script (contract §4). */
export const taskTypes = [...scriptTypes, 'INSTALL', 'UPGRADE', 'COPY', 'FETCH'] as const
export type TaskType = (typeof taskTypes)[number]

export function runsScript(type: TaskType): type is ScriptType {
  return (scriptTypes as readonly string[]).includes(type)
}

/** How a task goes over its hosts (contract §4). */
export const strategies = ['PARALLEL', 'SEQUENTIAL', 'ROLLING'] as const
export type Strategy = (typeof strategies)[number]

/** Hosts at a time: a number, a percentage of them, or a list for canaries whose last entry repeats (contract §4). */
export type BatchSize = number | string | (number | string)[]
/** A number of hosts, or a percentage of them. */
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
/** How many hosts are in each status; statuses without a host are 0. */
export type Counts = Record<ResultStatus, number>

export const streams = ['stdout', 'stderr'] as const
export type Stream = (typeof streams)[number]

/** A process that neither TERM nor KILL ended; `command` is its program's name. */
export interface Survivor {
  pid: number
  command: string
}

/** What was learnt of a host after its final state (contract §4). */
export interface LateResult {
  status: ResultStatus
  exitCode: number | null
  signal: string | null
  completedAt: string
}

/** One host's part of a task, as it is shown and as it is kept when the task has ended. */
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
  /** What held its processes together, by which a timeout or a cancel finds them; null where nothing was started, or nothing is known. */
  containment: Containment | null
  /** What could not be ended, 20 at most; null where a process may have left unseen. */
  survivors: Survivor[] | null
  /** Of a copy: whether it changed the host, or would have; null where that is not known, and of all else (contract §13). */
  changed: boolean | null
  /** Where it is while RUNNING, else null. */
  phase: Phase | null
  /** What verified it and what undid it, where these have run (contract §15). */
  verify: VerifyResult | null
  rollback: RollbackResult | null
  lateResult: LateResult | null
}

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
  return Object.fromEntries(resultStatuses.map((status) => [status, 0])) as Counts
}

export function countsOf(results: Iterable<{ readonly status: ResultStatus }>): Counts {
  const counts = emptyCounts()
  for (const { status } of results) counts[status]++
  return counts
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
