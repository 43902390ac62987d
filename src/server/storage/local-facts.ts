import { EventEmitter } from 'node:events'
import type { RollbackResult, VerifyResult } from '../../core/tasks/gates.ts'
import type { ResultStatus, TaskStatus } from '../../core/tasks/task.ts'
import type { UserCaller } from './ports/caller.ts'
import type { ScheduleRecord, SlotRecord } from './records/schedule.ts'
import type { TerminalRecord } from './records/terminal.ts'

/** What this process did or saw, by topic. */
export interface Facts {
  /** A result became final; `duration` in milliseconds, null where the script never started. */
  resultFinal: {
    status: ResultStatus
    duration: number | null
    verify?: VerifyResult | null
    rollback?: RollbackResult | null
  }
  /** A host takes no further part in a fetch: its execution has ended. */
  fetchEnded: { taskId: string; hostId: number }
  taskEnded: { taskId: string; status: TaskStatus }
  /** Slots of a schedule were run or skipped by this server; `late`: milliseconds by which the run began after its time. */
  slot: { schedule: Readonly<ScheduleRecord>; slot: Readonly<SlotRecord>; late: number | null }
  /** A schedule does not run any more. */
  scheduleSuspended: { schedule: Readonly<ScheduleRecord>; why: string }
  /** This process ended an agent's token. */
  agentTokenEnded: { agentId: string }
  /** A client begins or ceases to follow a stream of events of this route. */
  stream: { route: string; opened: boolean }
  /** An agent sent a frame for a task or session that is not its host's (contract §6). */
  foreignFrame: { agentId: string; hostId: number; type: 'task' | 'terminal'; id: string }
  /** A link was closed because of stray frames (contract §6). */
  strayFrames: { agentId: string; hostId: number }
  /** An agent refused a message as not signed by this server (reliability S05). */
  distrusted: { agentId: string; hostId: number; taskId: string | null; message: string }
  /** A client took its place at a terminal session, or reads along; its recording came to its bound; or the session ended. */
  terminal: { record: TerminalRecord } & (
    | { kind: 'attached' | 'watched'; caller: UserCaller; ip: string | null }
    | { kind: 'full' }
    | { kind: 'ended' }
  )
  /** The store is a backup that was brought back, as an agent proved; `tasks` is how many are held. */
  restored: { hostId: number; agentId: string; reason: string; tasks: number }
  /** An agent says that the store has lost something, without a MAC that proves that it has heard so from this server. */
  unprovenMark: { hostId: number; agentId: string; hasMac: boolean }
  /** The first key that a host showed is the one that it has to show from now on. */
  hostKeyPinned: { hostId: number; hostname: string; key: string }
  /** A record that never had an agent was renamed, as a machine with its hostname was enrolled. */
  hostnameYielded: { hostId: number; previous: string; hostname: string }
  /** Two agents share this host's identity, or no longer do (reliability F12). */
  duplicateAgent: { hostId: number; duplicate: boolean }
  /** What came of a try to deliver to a webhook, or how many deliveries were given up. */
  webhook: { outcome: 'delivered' | 'failed' | 'gave_up'; count: number }
  /** Bytes of files that came, or that left. */
  fileBytes: { direction: 'in' | 'out'; bytes: number }
  /** The server stops: what would stay open for long has to end now. */
  stopping: { reason: string }
}

/**
 * Facts of this process for this process, each exactly once: what is written to the audit log or counted by whoever did
 * it, and what other servers of the store must not act on.
 */
export interface LocalFacts {
  publish<T extends keyof Facts>(topic: T, fact: Facts[T]): void
  /** Answers the way to unsubscribe. Listeners must not throw or block. */
  subscribe<T extends keyof Facts>(topic: T, listener: (fact: Facts[T]) => void): () => void
}

export function createLocalFacts(): LocalFacts {
  const emitter = new EventEmitter().setMaxListeners(0)
  return {
    publish: (topic, fact) => void emitter.emit(topic, fact),
    subscribe(topic, listener) {
      emitter.on(topic, listener)
      return () => void emitter.off(topic, listener)
    },
  }
}
