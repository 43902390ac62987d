import { EventEmitter } from 'node:events'
import type { RollbackResult, VerifyResult } from '../../core/tasks/gates.ts'
import type { ResultStatus, TaskStatus } from '../../core/tasks/task.ts'
import type { UserCaller } from './ports/caller.ts'
import type { ScheduleRecord, SlotRecord } from './records/schedule.ts'
import type { TerminalRecord } from './records/terminal.ts'

export interface Facts {
  /** A result became final; `duration` in milliseconds, null if the script never started. */
  resultFinal: {
    status: ResultStatus
    duration: number | null
    verify?: VerifyResult | null
    rollback?: RollbackResult | null
  }
  /** A host's execution has ended, so that it takes no further part in a fetch. */
  fetchEnded: { taskId: string; hostId: number }
  taskEnded: { taskId: string; status: TaskStatus }
  /** This server ran or skipped slots of a schedule; `late`: delay of the run in milliseconds. */
  slot: { schedule: Readonly<ScheduleRecord>; slot: Readonly<SlotRecord>; late: number | null }
  scheduleSuspended: { schedule: Readonly<ScheduleRecord>; why: string }
  agentTokenEnded: { agentId: string }
  stream: { route: string; opened: boolean }
  /** An agent sent a frame for a task or session that is not its host's (contract §6). */
  foreignFrame: { agentId: string; hostId: number; type: 'task' | 'terminal'; id: string }
  /** A link was closed because of stray frames (contract §6). */
  strayFrames: { agentId: string; hostId: number }
  /** An agent refused a message as not signed by this server (reliability S05). */
  distrusted: { agentId: string; hostId: number; taskId: string | null; message: string }
  /** A client attached to a terminal session or watches it; its recording reached the limit; or it ended. */
  terminal: { record: TerminalRecord } & (
    | { kind: 'attached' | 'watched'; caller: UserCaller; ip: string | null }
    | { kind: 'full' }
    | { kind: 'ended' }
  )
  /** An agent proved that the store is a restored backup; `tasks`: number of held tasks. */
  restored: { hostId: number; agentId: string; reason: string; tasks: number }
  /** An agent reports that the store lost data, without a MAC that proves that this server told it so. */
  unprovenMark: { hostId: number; agentId: string; hasMac: boolean }
  /** The first key that a host presented is now required of it. */
  hostKeyPinned: { hostId: number; hostname: string; key: string }
  /** A record that never had an agent was renamed, because a machine with its hostname enrolled. */
  hostnameYielded: { hostId: number; previous: string; hostname: string }
  /** Two agents share this host's identity, or no longer do (reliability F12). */
  duplicateAgent: { hostId: number; duplicate: boolean }
  /** Outcome of a webhook delivery attempt, or number of deliveries that were given up. */
  webhook: { outcome: 'delivered' | 'failed' | 'gave_up'; count: number }
  fileBytes: { direction: 'in' | 'out'; bytes: number }
  /** The server stops: long-lived streams and connections must end now. */
  stopping: { reason: string }
}

/**
 * Events of this process for this process, each exactly once: for the audit log and for counters. Other
 * servers of the store must not act on them.
 */
export interface LocalFacts {
  publish<T extends keyof Facts>(topic: T, fact: Facts[T]): void
  /** Returns the function that unsubscribes. Listeners must not throw or block. */
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
