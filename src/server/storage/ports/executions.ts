import type { FaultPoint } from '../../../core/fault-point.ts'
import type { ScriptComplete, ScriptOutput } from '../../../core/protocol/messages.ts'
import type { Phase } from '../../../core/tasks/gates.ts'
import type { Counts, TaskResult } from '../../../core/tasks/task.ts'
import type { ExecutionRecord, TaskRecord } from '../records/task.ts'
import type { LinkClaim, Member } from './cluster.ts'
import type { Part } from './outputs.ts'
import type { Transaction } from './store.ts'

export type Execution = Readonly<ExecutionRecord>

export interface OutputSoFar {
  /** Everything up to this sequence is stored, or dropped because it exceeds the limit; -1 for no output. */
  storedSequence: number
  stdoutBytes: number
  stderrBytes: number
  /** Output beyond the limit was dropped. */
  truncated: boolean
  /** Some output could not be stored and will not be sent again. */
  incomplete: boolean
}

/** Execution of a running task; `named` takes effect when the agent reports it, before that is on disk. */
export interface RunningExecution {
  execution: Execution
  output: Readonly<OutputSoFar>
}

/** Capacity and agent of a link that executions can be sent over. */
export interface Offer {
  claim: LinkClaim
  capacity: number
  /** The agent's journal, process and journal position; a HELLO of others does not get it again. */
  agent: Pick<ExecutionRecord, 'agentStoreId' | 'agentInstanceId' | 'agentJournal'>
}

export interface ReportedEnd {
  complete: ScriptComplete
  /** The server waited for missing output in vain. */
  incomplete: boolean
  /** Why a SUCCESS cannot be true; null if it may be. */
  contradiction?: string | null
  /** Advice if a default timeout ended one of its scripts. */
  timeoutHint?: string | null
}

/** End of an execution that the server ran over SSH. */
export interface OwnEnd {
  status: 'SUCCESS' | 'FAILED' | 'TIMEOUT' | 'CANCELLED'
  exitCode: number | null
  error: string | null
}

/** Puts records together with the end of a task. */
export type AtTheEnd = (tx: Pick<Transaction, 'put'>, ended: TaskRecord) => void

export interface End {
  id: string
  error: string
}

type PointOf<P> = P extends `server.${infer Name}.before` ? Name : never

/** Right to take a step: a server that has lost the task or the link changes nothing. */
export type Guard =
  /** The server owns the task; with `claims`, it takes the executions, like a link those that it sends. */
  | { readonly owner: Member; readonly claims?: true }
  /** The link is the current one of its host. */
  | { readonly link: LinkClaim }
  /** The executions were marked for this link, or taken over by it. */
  | { readonly marked: Pick<LinkClaim, 'epoch'> }

/** Step on executions as a value; `storage/executions/transitions.ts` makes all of them. */
export interface Transition {
  /** Null: any server may take the step. */
  readonly guard: Guard | null
  /** Ids, or a host: all of its executions that have not ended. */
  readonly which: readonly string[] | { readonly hostId: number }
  /** Fault points around its write; null for none. */
  readonly point: PointOf<FaultPoint> | null
  /** Next state of an execution; null leaves it unchanged. `at`: now, ISO 8601. */
  readonly decide: (current: Execution, output: OutputSoFar, at: string) => Execution | null
  /** Skips tasks that a restore holds. */
  readonly unlessHeld?: boolean
}

/** Tasks in which nothing starts until a person confirms that the store was restored. */
export interface HeldTasks {
  has(taskId: string): boolean
  ids(): string[]
  /** Holds those of the tasks that still have something to start, at once. */
  add(taskIds: Iterable<string>): Promise<void>
  /** Releases all. */
  clear(): Promise<void>
}

/** Executions of running tasks, as all servers of the store changed them. */
export interface ExecutionReads {
  /**
   * Execution of a running task; undefined also if the host is not part of it. Executions that this server
   * marked as sent or took over are current, in the order of the calls.
   */
  find(taskId: string, hostId: number): Promise<RunningExecution | undefined>
  /** Executions of a task in plan order, or of some hosts in any order; empty if it is not running. */
  page(taskId: string, part?: Part): Promise<RunningExecution[]>
  /** RUNNING executions of a host, then due PENDING ones, longest due first; none that are held. */
  ofHost(hostId: number): Promise<RunningExecution[]>
  /** Filters hosts with executions to take. */
  waiting(hostIds: readonly number[]): Promise<number[]>
  /** Number of executions that the host has to take; may be slightly stale, because each heartbeat asks. */
  waitingOn(hostId: number): Promise<number>
  /** Null if the task is not running. */
  counts(taskId: string): Promise<Counts | null>
  /** Changes since a cursor (0: the creation) in their current state; nearby ones may be repeated. */
  changes(taskId: string, after: number): Promise<{ executions: Execution[]; cursor: number }>
  /** Tasks that may have changed since a cursor (0: ever), for polling that makes up for lost hints. */
  changedTasks(taskIds: readonly string[], after: number): Promise<{ taskIds: string[]; cursor: number }>
  running(): Promise<string[]>
  /** Load of all servers: running tasks, RUNNING executions, and due PENDING ones. */
  load(): Promise<{ tasks: number; running: number; waiting: number }>
}

/**
 * All running tasks and their executions, for every server of a store. Each change is one durable step on a
 * set, guarded by the stored state. It allows only transitions of `mayBecome`, never out of a final state, and
 * no starts in a held task. It refuses writes by a server that has lost its task or its link. Returns the
 * executions that changed and publishes hints: `task` for followers, `lane` for the server with the link of a
 * host that has something to take or to cancel. Rejects with `unavailable` if the store refuses a write; a
 * file store has then changed nothing, PostgreSQL may have changed some of the executions.
 */
export interface Executions extends ExecutionReads {
  /**
   * Writes a new task in one step with the writes of `also`. If `also` returns a value other than null,
   * nothing is written and that value is returned.
   */
  create<T>(
    task: TaskRecord,
    executions: readonly ExecutionRecord[],
    also: (tx: Transaction) => Promise<T | null>,
  ): Promise<T | null>
  transition(step: Transition): Promise<Execution[]>
  pause(by: Member, taskId: string, until: string | null): Promise<void>
  /**
   * Ends pending executions and requests the end of running ones; with `pendingOnly` those continue. Rejects
   * with `conflict` if the task has ended.
   */
  cancel(taskId: string, how?: { pendingOnly: true; error: string }): Promise<Execution[]>
  /** Ends the task and stores its results, in one step with writes of `also`; null while an execution is open. */
  finish(by: Member, taskId: string, also?: AtTheEnd | null): Promise<TaskRecord | null>

  /** Marks due executions of these hosts as sent, longest due first, up to capacity; none over SSH. */
  take(offers: readonly Offer[]): Promise<Execution[]>
  /**
   * Executions sent to the host that have not ended, for a HELLO; includes all marked for an older link. From
   * here on the claim has them: the older link cannot return any.
   */
  takeOver(claim: LinkClaim, except: ReadonlySet<string>): Promise<RunningExecution[]>
  /** Notes that the agent has the execution. Durable soon; callers do not wait. */
  received(id: string): void
  /**
   * Appends a piece of output, in the order of the calls. Resolves with the sequence up to which all is
   * stored, once the piece is durable or dropped: as a duplicate, past a gap or past the limit. Null if an
   * earlier refusal dropped it too.
   */
  append(
    id: string,
    output: ScriptOutput,
    json: Uint8Array | undefined,
    isOurs: boolean,
  ): Promise<number | null>
  /** Notes a later phase of the task; ignores any other. */
  reached(id: string, phase: Phase): Promise<void>
  /** Ends an execution as its agent reports; no effect if it has ended already. */
  settle(id: string, end: ReportedEnd): Promise<Execution[]>
  /** Notes a result that arrived after a final state, once; in the task's results if the task has ended. */
  late(taskId: string, hostId: number, result: NonNullable<TaskResult['lateResult']>): Promise<void>

  /** Like Store.transact, with the number of the host's executions that have not ended. */
  transactWithOpen<T>(hostId: number, work: (tx: Transaction, open: number) => Promise<T>): Promise<T>
  readonly held: HeldTasks
  close(): Promise<void>
}
