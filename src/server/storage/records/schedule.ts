import type { Role } from '../../../core/permissions.ts'
import type { Target } from '../../../core/protocol/http/targets.ts'
import type { ExecutionOptions, TaskCreate } from '../../../core/protocol/http/tasks.ts'
import type { Missed, Overlap, SkipReason, SlotOutcome } from '../../../core/schedules/decide.ts'
import type { Timing } from '../../../core/schedules/timing.ts'
import type { Sealed } from '../ports/keys.ts'

/** What is run at its slots, on which hosts, and when (contract §14). */
export interface ScheduleRecord extends Timing {
  id: number
  name: string
  scriptId: number | null
  script: NonNullable<TaskCreate['script']> | null
  copy: NonNullable<TaskCreate['copy']> | null
  target: Target
  options: Omit<ExecutionOptions, 'async' | 'secretParams'>
  /** JSON of `secretParams`, sealed; null where there are none. */
  secretParams: Sealed | null
  secretParamNames: string[]
  /** Digests of the stored scripts that its secrets were given for, by id. Absent in records of older servers. */
  secretsFor?: Record<string, string>
  enabled: boolean
  overlap: Overlap
  missed: Missed
  missedWithinSeconds: number
  /** Whose rights it has, and what that user was called when it was written. */
  ownerId: number
  owner: string
  /** The personal token that it was written with, whose revocation suspends it; null: a session. */
  tokenId: number | null
  /** That of the token or session that it was written with. */
  role: Role
  /** All slots up to here are done with: run, queued or skipped. */
  cursor: string
  /** The slot that waits for the end of a task. */
  queued: string | null
  /** When it is looked at next, with jitter; null: not before it changes. */
  dueAt: string | null
  /** Why it does not run any more. */
  suspended: string | null
  /** Of the last slot that was to run, or `run`. `taskId`: null where no task could be made. */
  lastRun: { taskId: string | null; at: string } | null
  /** Goes up with each change by a user. */
  revision: number
  createdAt: string
  updatedAt: string
}

/** What became of a slot, or of several that were skipped together. The newest 100 of a schedule are kept. */
export interface SlotRecord {
  /** `scheduleId/plannedAt`: no slot has two. */
  id: string
  scheduleId: number
  /** The last slot that it speaks of; of `run` when that was. */
  plannedAt: string
  /** The first slot, where it speaks of several. */
  firstAt: string
  /** How many slots they are; null: too many to count. */
  count: number | null
  at: string
  outcome: SlotOutcome
  /** Who ran it by hand. */
  by: string | null
  taskId: string | null
  why: SkipReason | null
  error: string | null
}
