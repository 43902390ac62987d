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

/** A task without its hosts' parts. It keeps its own copy of script, target and creator (contract §3). */
export interface TaskRecord {
  id: string
  status: TaskStatus
  hostCount: number
  /** Counts by result status, kept when the task is final; while it runs they follow from its executions. */
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
   * Of a script without a name; of a task that runs no script what it does. Absent in records of older servers, and of scripts
   * with a name.
   */
  firstLine?: string | null
  type: TaskType
  /** The text that runs, empty where no script does; null when the task is final: then it stands in the task's archive. */
  content: string | null
  params: Record<string, string>
  /** An ended task of the file store: `params` is empty, and they are in its results file. */
  paramsInResults?: true
  /** JSON of `secretParams`, sealed; removed when the task is final. */
  secretParams: Sealed | null
  /** Of type UPGRADE only: as it is sent, so that a release that is replaced meanwhile changes nothing of it. */
  upgrade?: UpgradeOrder
  /** Absent where nothing follows on its script. */
  gates?: TaskGates
  /** Of type INSTALL only. */
  install?: InstallOrder
  /** Of type COPY only: as it is sent, but for names of hosts in its path. */
  copy?: CopyOrder
  /** Of type FETCH only. */
  fetch?: Omit<FetchOrder, 'maxSize'> & Partial<Pick<FetchOrder, 'maxSize'>>
  /** What scripts read. */
  stdin?: FileOfTask
  /** What the file of `copy` or `stdin` is called where it comes from; absent where nobody said. */
  fileName?: string
  /** Whether the file that it names goes with the task's end. */
  hasSecretFile?: true
  /** Bytes a second of all its hosts together; absent where it is not bounded. */
  limitRate?: number
  timeout: number
  /** Neither the request nor the script named a timeout. Absent in records of older servers. */
  hasDefaultTimeout?: true
  workDir: string | null
  runAs: string | null
  /** Absent in records of older servers. */
  limits?: Limits | null
  maxOutputBytes: number
  clusterId: number | null
  /**
   * Ids of its hosts, folded like `1-300,305`: what a search by host needs. Absent in records of older servers until the next
   * start.
   */
  hostSet?: string
  /** Names of the secret params, which a retry has to be given again. Absent in records of older servers. */
  secretParamNames?: string[]
  /** The task whose unsuccessful hosts this one took up again. Absent in records of older servers. */
  retryOf?: string | null
  /** The schedule that started it, and for which slot: null where a user said `run`. Both absent in tasks of none. */
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
  /** Of the server, for its agents; `--public-url` goes before it. */
  url: string
  fingerprint: string | null
}

/** A script that runs after that of the task. */
export interface GateScript {
  scriptId: number | null
  scriptVersion: number | null
  scriptName: string | null
  /** As of the task. */
  firstLine: string | null
  type: ScriptType
  /** Null when the task is final, as that of the task. */
  content: string | null
  timeout: number
  /** As of the task. */
  hasDefaultTimeout?: true
}

/** What follows on the script of a task on each host (contract §15). Times in seconds. */
export interface TaskGates {
  /**
   * The text that the task runs. `content` of the task tells older servers, which would run it without what follows, to run
   * nothing.
   */
  script: string | null
  verify: (GateScript & { retries: number; intervalSeconds: number }) | null
  rollback: GateScript | null
}

/** An Idempotency-Key of a user, for 24 h; id is `userId/key`. */
export interface IdempotencyRecord {
  id: string
  bodyHash: string
  taskId: string
  createdAt: string
}

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
