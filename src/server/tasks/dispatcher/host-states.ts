import { BoundedMap } from '../../../core/bounded-map.ts'
import type { ScriptComplete } from '../../../core/protocol/messages.ts'
import type { AgentLink, LinkClaim } from '../../storage/ports/cluster.ts'

/** Agent processes per host whose journals are remembered. */
const knownInstances = 8
/** Ended tasks remembered per host: far more than an agent has unreported executions. */
const maxEnded = 1024

export interface Incoming {
  /** Appends in progress, and a promise for the last of them. */
  writing: number
  appended: Promise<void>
  /** Last stored sequence, and whether an acknowledgement is scheduled. */
  storedSequence: number
  acknowledging: boolean
  early: EarlyEnd | null
}

/** An end that arrived before all output up to its `lastSequence` was stored; settled once it is. */
export interface EarlyEnd {
  readonly link: AgentLink
  readonly complete: ScriptComplete
  /** Monotonic milliseconds of its arrival, or of the last output since. */
  at: number
}

/** State of a host whose agent has, or had, its link here. */
export class HostState {
  link: AgentLink | null = null
  /** Epoch of the newest link, even before it is taken up; null when that link is gone. */
  epoch: number | null = null
  /** Tasks that the current link's agent named or was sent: it reports that they still run. */
  named = new Set<string>()
  /** Tasks sent over any link, with the monotonic milliseconds of the last report over this one. */
  heard = new Map<string, number>()
  /** Tasks whose cancel was sent over the current link. */
  cancelled = new Set<string>()
  /** Executions whose frames were never sent, until that is durable. */
  readonly unsent = new Map<string, LinkClaim>()
  requeuing: Promise<void> | null = null
  /** By task. */
  readonly incoming = new Map<string, Incoming>()
  /** Settles when the newest link is taken up, or that failed: frames wait for it. */
  takenUp: Promise<unknown> = Promise.resolve()
  /** Resolves when all frames being marked as sent were sent or failed. */
  sending: Promise<unknown> = Promise.resolve()
  /** Tasks that ended here, with the write of their late result; null if none was reported. */
  readonly #ended = new BoundedMap<string, Promise<void> | null>(maxEnded)
  /** Highest known journal sequence of each agent process; several processes are copies or restarts. */
  readonly #journals = new BoundedMap<string, number>(knownInstances)

  forget(taskId: string): void {
    this.named.delete(taskId)
    this.heard.delete(taskId)
    this.cancelled.delete(taskId)
  }

  /** Undefined if the task is not known to have ended. */
  ended(taskId: string): { late: Promise<void> | null } | undefined {
    const late = this.#ended.get(taskId)
    return late === undefined ? undefined : { late }
  }

  /** Returns false if an older one was evicted. */
  noteEnded(taskId: string, late = this.#ended.get(taskId) ?? null): boolean {
    const hasRoom = this.#ended.size < maxEnded || this.#ended.has(taskId)
    this.#ended.set(taskId, late)
    return hasRoom
  }

  journal(instanceId: string): number {
    return this.#journals.get(instanceId) ?? 0
  }

  noteJournal(instanceId: string, sequence: number): void {
    this.#journals.set(instanceId, Math.max(sequence, this.journal(instanceId)))
  }
}

export class HostStates extends Map<number, HostState> {
  of(hostId: number): HostState {
    const state = this.get(hostId) ?? new HostState()
    this.set(hostId, state)
    return state
  }
}
