import type { CopyOrder, FetchOrder, FileOfTask, UpgradeOrder } from '../../../core/protocol/messages.ts'
import type { ScriptType } from '../../../core/scripts/script-form.ts'
import type { GatePhase, RollbackResult, VerifyResult } from '../../../core/tasks/gates.ts'
import type { Limits } from '../../../core/tasks/limits.ts'
import type {
  BatchSize,
  Counts,
  MaxFailures,
  ResultStatus,
  Strategy,
  TaskResult,
  TaskStatus,
  TaskType,
} from '../../../core/tasks/task.ts'
import type { Sealed } from '../ports/keys.ts'

/** Task without its executions. It keeps its own copy of script, target and creator (contract §3). */
export interface TaskRecord {
  id: string
  status: TaskStatus
  hostCount: number
  /** Counts by result status, stored when the task is final; until then they come from its executions. */
  counts: Counts | null
  strategy: Strategy
  batchSize: BatchSize | null
  concurrency: number | null
  maxFailures: MaxFailures | null
  pauseSeconds: number
  queueSeconds: number | null
  scriptId: number | null
  scriptVersion: number | null
  scriptName: string | null
  /**
   * First line of an unnamed script; for a task without a script, what it does. Absent in records of older
   * servers, and for named scripts.
   */
  firstLine?: string | null
  type: TaskType
  /** Text of the script, empty without one; null once the task is final: the task's archive has it then. */
  content: string | null
  params: Record<string, string>
  /** Ended task of the file store: `params` is empty, the results file has them. */
  paramsInResults?: true
  /** JSON of `secretParams`, sealed; removed when the task is final. */
  secretParams: Sealed | null
  /** UPGRADE only: the order as sent, so that a release replaced meanwhile does not change it. */
  upgrade?: UpgradeOrder
  /** Absent without gates. */
  gates?: TaskGates
  /** INSTALL only. */
  install?: InstallOrder
  /** COPY only: the order as sent, except for host names in its path. */
  copy?: CopyOrder
  /** FETCH only. */
  fetch?: Omit<FetchOrder, 'maxSize'> & Partial<Pick<FetchOrder, 'maxSize'>>
  /** Stdin of the scripts. */
  stdin?: FileOfTask
  /** Source name of the file of `copy` or `stdin`; absent if unknown. */
  fileName?: string
  /** Whether its file is removed when the task ends. */
  hasSecretFile?: true
  /** Bytes per second of all its hosts together; absent without a limit. */
  limitRate?: number
  timeout: number
  /** Neither the request nor the script sets a timeout. Absent in records of older servers. */
  hasDefaultTimeout?: true
  workDir: string | null
  runAs: string | null
  /** Absent in records of older servers. */
  limits?: Limits | null
  maxOutputBytes: number
  clusterId: number | null
  /** Host ids, folded like `1-300,305`, for searches. Absent in old records until the next start. */
  hostSet?: string
  /** Names of the secret params, which a retry must supply again. Absent in records of older servers. */
  secretParamNames?: string[]
  /** Task whose unsuccessful hosts this one retries. Absent in records of older servers. */
  retryOf?: string | null
  /** Schedule that started it, and the slot: null for a manual run. Both absent in other tasks. */
  scheduleId?: number
  plannedAt?: string | null
  createdBy: string
  createdById: number
  createdAt: string
  startedAt: string | null
  completedAt: string | null
  duration: number | null
  cancelRequestedAt: string | null
  /** When the next batch may start, while the strategy pauses; survives a restart. */
  pauseUntil: string | null
}

/** How a task of type INSTALL installs the agent (contract §10). */
export interface InstallOrder {
  sudo: boolean
  forgetCredentials: boolean
  /** URL of the server for its agents; `--public-url` takes precedence. */
  url: string
  fingerprint: string | null
}

/** Script that runs after the task's script. */
export interface GateScript {
  scriptId: number | null
  scriptVersion: number | null
  scriptName: string | null
  firstLine: string | null
  type: ScriptType
  /** Null once the task is final, as in TaskRecord. */
  content: string | null
  timeout: number
  hasDefaultTimeout?: true
}

/** Gates of a task, on each host (contract §15). Times in seconds. */
export interface TaskGates {
  /**
   * Script of the task. Its `content` is a script that fails, for older servers, which would ignore the gates.
   */
  script: string | null
  verify: (GateScript & { retries: number; intervalSeconds: number }) | null
  rollback: GateScript | null
}

/** Idempotency-Key of a user, for 24 h; id is `userId/key`. */
export interface IdempotencyRecord {
  id: string
  bodyHash: string
  taskId: string
  createdAt: string
}

/** One host's part of a running task, key `taskId/hostId`; moves to the task's results file at its end. */
export interface ExecutionRecord {
  id: string
  taskId: string
  hostId: number
  hostname: string
  /** Position in the plan. */
  position: number
  status: ResultStatus
  /** When it became due; the queue timeout counts from here. */
  dueAt: string | null
  /** Durable before the frame is sent: at most one start (contract §4). */
  sentAt: string | null
  /** The server runs it over SSH, so links do not take it. */
  overSsh?: true
  /** Journal of the agent that it was sent to; null for a base-protocol agent. */
  agentStoreId: string | null
  /** The agent's process and journal position; absent in old records, null for older agents. */
  agentInstanceId?: string | null
  agentJournal?: number | null
  /** Whether the agent has confirmed that it has it: from then on it is never resent. */
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
  /** Phase that its agent reported last, with gates and past the script. */
  phase?: GatePhase
  /** As its agent reports them; absent if they did not run. */
  verify?: VerifyResult
  rollback?: RollbackResult
  /** Absent until an agent reports it; so are `survivors` and `changed`. */
  containment?: TaskResult['containment']
  survivors?: TaskResult['survivors']
  changed?: TaskResult['changed']
  /** Result that arrived after the final state (contract §4). */
  lateResult: TaskResult['lateResult']
}
