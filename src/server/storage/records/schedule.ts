import type { Role } from '../../../core/permissions.ts'
import type { Target } from '../../../core/protocol/http/clusters.ts'
import type { ExecutionOptions, TaskCreate } from '../../../core/protocol/http/tasks.ts'
import type { Missed, Overlap, SkipReason, SlotOutcome } from '../../../core/schedules/decide.ts'
import type { Timing } from '../../../core/schedules/timing.ts'
import type { Sealed } from '../ports/keys.ts'

/** Script or copy that runs at set times on a target (contract §14). */
export interface ScheduleRecord extends Timing {
  id: number
  name: string
  scriptId: number | null
  script: NonNullable<TaskCreate['script']> | null
  copy: NonNullable<TaskCreate['copy']> | null
  target: Target
  options: Omit<ExecutionOptions, 'async' | 'secretParams'>
  /** JSON of `secretParams`, sealed; null without any. */
  secretParams: Sealed | null
  secretParamNames: string[]
  /** Digests of the stored scripts that its secrets were given for, by id. Absent in records of older servers. */
  secretsFor?: Record<string, string>
  enabled: boolean
  overlap: Overlap
  missed: Missed
  missedWithinSeconds: number
  /** User whose rights it has, and that user's name when it was written. */
  ownerId: number
  owner: string
  /** Personal token that wrote it, whose revocation suspends it; null: a session. */
  tokenId: number | null
  /** Role of that token or session. */
  role: Role
  /** All slots up to here are done: run, queued or skipped. */
  cursor: string
  /** Slot that waits for a task to end. */
  queued: string | null
  /** Time of the next check, with jitter; null: not before it changes. */
  dueAt: string | null
  /** Why it no longer runs. */
  suspended: string | null
  /** Last slot that was due, or manual run. `taskId`: null if no task could be created. */
  lastRun: { taskId: string | null; at: string } | null
  /** Incremented by each change that a user makes. */
  revision: number
  createdAt: string
  updatedAt: string
}

/** Outcome of a slot, or of several that were skipped together. The newest 100 of a schedule are kept. */
export interface SlotRecord {
  /** `scheduleId/plannedAt`: one record per slot. */
  id: string
  scheduleId: number
  /** Last slot of the record; for a manual run, its time. */
  plannedAt: string
  /** First slot, if the record covers several. */
  firstAt: string
  /** Number of slots; null: too many to count. */
  count: number | null
  at: string
  outcome: SlotOutcome
  /** User who ran it manually. */
  by: string | null
  taskId: string | null
  why: SkipReason | null
  error: string | null
}
