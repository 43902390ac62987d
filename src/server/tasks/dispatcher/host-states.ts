import { BoundedMap } from '../../../core/bounded-map.ts'
import type { ScriptComplete } from '../../../core/protocol/messages.ts'
import type { AgentLink } from '../../storage/ports/agent-link.ts'
import type { LinkClaim } from '../../storage/ports/cluster.ts'

/** Processes of one agent whose journals are remembered. */
const knownInstances = 8
/** Ended tasks of one host that are remembered: far more than an agent has executions that it has yet to report. */
const maxEnded = 1024

/** Incoming output and end of one execution, over the links of its host. */
export interface Incoming {
  /** Appends under way, and when the last one of them ends. */
  writing: number
  appended: Promise<void>
  /** What is stored, and whether an acknowledgement of it is about to leave. */
  storedSequence: number
  acknowledging: boolean
  early: EarlyEnd | null
}

/** An end that came before all output up to its `lastSequence` was stored: it settles when that is. */
export interface EarlyEnd {
  readonly link: AgentLink
  readonly complete: ScriptComplete
  /** Monotonic milliseconds when it came, or the last output since. */
  at: number
}

/** State of a host whose agent has, or had, its link here. */
export class HostState {
  link: AgentLink | null = null
  /** Of the newest link, which may not have been taken up yet; null when that is gone. */
  epoch: number | null = null
  /** Tasks that the agent of the present link has named or was sent: it says that they still run. */
  named = new Set<string>()
  /** Tasks that were sent over this link or an earlier one, with the monotonic milliseconds of the last word of each over this one. */
  heard = new Map<string, number>()
  /** Tasks whose cancel was sent over the present link. */
  cancelled = new Set<string>()
  /** Executions whose frames never left, until that is on disk. */
  readonly unsent = new Map<string, LinkClaim>()
  requeuing: Promise<void> | null = null
  /** By task. */
  readonly incoming = new Map<string, Incoming>()
  /** Resolves when the newest link has been taken up, or could not be: frames wait for it. */
  takenUp: Promise<unknown> = Promise.resolve()
  /** Resolves when every frame that is being marked as sent has been sent, or has not left. */
  sending: Promise<unknown> = Promise.resolve()
  /** Tasks whose end here is known, with the write of what their agent told after it; null: it has not told yet. */
  readonly #ended = new BoundedMap<string, Promise<void> | null>(maxEnded)
  /** How far the journal of each process of its agent is known to go; more than one are copies, or restarts. */
  readonly #journals = new BoundedMap<string, number>(knownInstances)

  /** The task has ended here. */
  forget(taskId: string): void {
    this.named.delete(taskId)
    this.heard.delete(taskId)
    this.cancelled.delete(taskId)
  }

  /** Undefined: its end is not known. */
  ended(taskId: string): { late: Promise<void> | null } | undefined {
    const late = this.#ended.get(taskId)
    return late === undefined ? undefined : { late }
  }

  /** Notes the end of a task here; false if an older one was evicted for it. */
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
