import type { ScriptComplete, ScriptOutput } from '../../../core/protocol/messages.ts'
import type { Phase } from '../../../core/tasks/gates.ts'
import type { Counts, TaskResult } from '../../../core/tasks/task.ts'
import type { ExecutionRecord, TaskRecord } from '../records/task.ts'
import type { LinkClaim, Member } from './cluster.ts'
import type { Part } from './outputs.ts'
import type { Transaction } from './store.ts'

export type Execution = Readonly<ExecutionRecord>

/** The output of an execution, as far as the server has it. */
export interface OutputSoFar {
  /** Everything up to this sequence is stored, or dropped because it exceeds the limit; -1 if there is nothing. */
  storedSequence: number
  stdoutBytes: number
  stderrBytes: number
  /** There was more than the server takes. */
  truncated: boolean
  /** Some output could not be stored and will not be sent again. */
  incomplete: boolean
}

/** An execution of a task that runs; `named` of its record holds from the agent's word on, before that is on disk. */
export interface RunningExecution {
  execution: Execution
  output: Readonly<OutputSoFar>
}

/** What a host can be sent over a link. */
export interface Offer {
  claim: LinkClaim
  /** Executions that the agent takes at once. */
  capacity: number
  /** The agent's journal, its process, and how far the journal goes: a HELLO of another one is not sent it again. */
  agent: Pick<ExecutionRecord, 'agentStoreId' | 'agentInstanceId' | 'agentJournal'>
}

/** An agent's word on how an execution ended. */
export interface ReportedEnd {
  complete: ScriptComplete
  /** The server waited for missing output, and it never came. */
  incomplete: boolean
  /** Why a SUCCESS cannot be true; null if it may be. */
  contradiction?: string | null
  /** Advice if a default timeout ended one of its scripts. */
  timeoutHint?: string | null
}

/** How an execution ended that the server itself ran over SSH. */
export interface OwnEnd {
  status: 'SUCCESS' | 'FAILED' | 'TIMEOUT' | 'CANCELLED'
  exitCode: number | null
  error: string | null
}

/** What is put with the end of a task. */
export type AtTheEnd = (tx: Pick<Transaction, 'put'>, ended: TaskRecord) => void

/** Where and why an execution ends although its agent did not report an end. */
export interface End {
  id: string
  error: string
}

/**
 * All tasks that run and their executions, for every server of a store. Each change is one durable step on a set, guarded
 * by what is stored: only transitions of `mayBecome`, never out of a final state, nothing that starts where a task is held,
 * and nothing by a server that has lost its task (`by`) or its link (`claim`). It answers the executions that changed, and
 * hints at them: `task` for those who follow it, `lane` for the server with the link of a host that has something to take
 * or to cancel. Rejects with `unavailable`, nothing changed, when the disk refuses.
 */
export interface Executions {
  /**
   * Writes a new task in one step with what `also` writes. Where `also` answers something else than null, nothing is
   * written and that is the answer.
   */
  create<T>(
    task: TaskRecord,
    executions: readonly ExecutionRecord[],
    also: (tx: Transaction) => Promise<T | null>,
  ): Promise<T | null>

  /** The turn of these executions of a task has come. */
  due(by: Member, ids: readonly string[]): Promise<Execution[]>
  skip(by: Member, ids: readonly string[], error: string): Promise<Execution[]>
  /** Gives up what is due and has not been sent. */
  unreachable(by: Member, ends: readonly End[]): Promise<Execution[]>
  pause(by: Member, taskId: string, until: string | null): Promise<void>
  /** Stores the results and ends the task, in one step with what `also` puts; null while an execution is open. */
  finish(by: Member, taskId: string, also?: AtTheEnd | null): Promise<TaskRecord | null>

  /**
   * Ends what has not started and requests the end of what runs; with `pendingOnly` that goes on. Rejects with `conflict`
   * where the task has ended.
   */
  cancel(taskId: string, how?: { pendingOnly: true; error: string }): Promise<Execution[]>
  /** Ends everything of a host that is being removed, or what is RUNNING on one whose agent was revoked. */
  abandon(hostId: number, parting: 'removed' | 'revoked'): Promise<Execution[]>

  /** Marks due executions that run over SSH as begun. The owner of the task runs them. */
  begin(by: Member, ids: readonly string[]): Promise<Execution[]>
  end(by: Member, id: string, end: OwnEnd): Promise<Execution[]>

  /** Marks due executions of these hosts as sent, oldest turn first, as many as each host has room for; none that run over SSH. */
  take(offers: readonly Offer[]): Promise<Execution[]>
  /** Frames that never left: PENDING again, unless a newer link has taken them over. */
  returnUnsent(claim: LinkClaim, ids: readonly string[]): Promise<Execution[]>
  /**
   * What was sent to the host and has no end, for a HELLO: nothing that was marked for an older link is missing. From here
   * on the claim has them: the older link returns none.
   */
  takeOver(claim: LinkClaim, except: ReadonlySet<string>): Promise<RunningExecution[]>
  /** The agent says in a HELLO that it has them. */
  named(claim: LinkClaim, ids: readonly string[]): Promise<void>
  /** The agent says that it has this one. Durable soon; nothing waits for it. */
  received(id: string): void
  /** Ends executions as FAILED that were marked as sent but must not run on the host; their frames were never sent. */
  refuse(claim: LinkClaim, ends: readonly End[]): Promise<Execution[]>
  /** Ends executions as LOST: they were sent, and nobody can know how they ended. */
  lose(by: LinkClaim | Member, ends: readonly End[]): Promise<Execution[]>
  /**
   * Takes in a piece of output, in the order of the calls; resolves with the sequence up to which all is stored when the
   * piece is durable or dropped: seen before, past a gap, past the bound. Null where an earlier refusal took it along.
   */
  append(
    id: string,
    output: ScriptOutput,
    json: Uint8Array | undefined,
    isOurs: boolean,
  ): Promise<number | null>
  /** The agent says that it has got to this phase. */
  reached(id: string, phase: Phase): Promise<void>
  /** Nothing changes where it has ended before. */
  settle(id: string, end: ReportedEnd): Promise<Execution[]>
  /** What was learnt after a final state, once, in the task's results where it has ended. */
  late(taskId: string, hostId: number, result: NonNullable<TaskResult['lateResult']>): Promise<void>

  /** As Store.transact, with how many executions of the host have not ended. */
  transactWithOpen<T>(hostId: number, work: (tx: Transaction, open: number) => Promise<T>): Promise<T>

  /**
   * Of a task that runs; undefined also where the host is none of its. What this server has marked as sent or taken over is
   * answered as it knows it, in the order of the calls.
   */
  find(taskId: string, hostId: number): Promise<RunningExecution | undefined>
  /** Those of a task that are of these hosts; none when it does not run. */
  ofHosts(taskId: string, hostIds: readonly number[]): Promise<RunningExecution[]>
  /** In the order of the plan, all or a part of them; empty when it does not run. */
  ofTask(taskId: string, part?: Part): Promise<RunningExecution[]>
  /** Those of a host that are RUNNING, then those that are due and PENDING, in the order of their turns; none that are held. */
  ofHost(hostId: number): Promise<RunningExecution[]>
  /** Those of the hosts that have something to take. */
  waiting(hostIds: readonly number[]): Promise<number[]>
  /** How many the host has to take, as it was not long ago: asked with each heartbeat. */
  waitingOn(hostId: number): Promise<number>
  /** Null when the task does not run. */
  counts(taskId: string): Promise<Counts | null>
  /** What changed since a cursor (0: the creation), as it is now; what changed about then may be told again. */
  changes(taskId: string, after: number): Promise<{ executions: Execution[]; cursor: number }>
  /**
   * Those of the tasks in which something changed since a cursor (0: ever), or that may be among them; for who looks after what
   * hints have lost.
   */
  changedTasks(taskIds: readonly string[], after: number): Promise<{ taskIds: string[]; cursor: number }>
  /** Ids of the tasks that run. */
  running(): Promise<string[]>
  /** How much there is to do on all servers: tasks that run, executions that are RUNNING, and that are due and PENDING. */
  load(): Promise<{ tasks: number; running: number; waiting: number }>

  /** Tasks of which nothing starts until a person has confirmed that the store was restored. */
  readonly held: ReadonlySet<string>
  /** Holds those of the tasks that have something to start, at once. */
  hold(taskIds: Iterable<string>): Promise<void>
  /** Nothing is held any more. */
  release(): Promise<void>
  /** Writes what still waits to be. */
  close(): Promise<void>
}
