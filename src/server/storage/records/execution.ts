import type { GatePhase, RollbackResult, VerifyResult } from '../../../core/tasks/gates.ts'
import type { ResultStatus, TaskResult } from '../../../core/tasks/task.ts'

/** One host's part of a running task, key `taskId/hostId`; moves to the task's results file when the task ends. */
export interface ExecutionRecord {
  id: string
  taskId: string
  hostId: number
  hostname: string
  /** Place in the order of the plan. */
  position: number
  status: ResultStatus
  /** When its turn came; the queue wait counts from here. */
  dueAt: string | null
  /** Durable before the frame leaves: at most one start (contract §4). */
  sentAt: string | null
  /** The server itself does it over SSH, and no link takes it. */
  overSsh?: true
  /** The journal of the agent it was sent to; null for a base-protocol agent. */
  agentStoreId: string | null
  /** The process of that agent, and how far its journal went; absent in records of older servers, null for older agents. */
  agentInstanceId?: string | null
  agentJournal?: number | null
  /** Whether the agent has ever said that it has it: from then on it is never sent again. */
  named: boolean
  cancelRequested: boolean
  exitCode: number | null
  signal: string | null
  startedAt: string | null
  completedAt: string | null
  duration: number | null
  stdoutBytes: number
  stderrBytes: number
  truncated: boolean
  outputComplete: boolean
  error: string | null
  /** Of one with gates that has got past its script: where its agent said last that it is. */
  phase?: GatePhase
  /** As its agent told them; absent where these have not run. */
  verify?: VerifyResult
  rollback?: RollbackResult
  /** Absent until an agent has told; so are `survivors` and `changed`. */
  containment?: TaskResult['containment']
  survivors?: TaskResult['survivors']
  changed?: TaskResult['changed']
  /** What was learnt after the final state (contract §4). */
  lateResult: TaskResult['lateResult']
}
