import type { TypedCount } from '../../core/terminals/terminal.ts'
import type { AgentLink } from '../storage/ports/cluster.ts'
import type { TerminalClient } from '../storage/ports/terminals.ts'
import type { TerminalRecord } from '../storage/records/terminal.ts'
import { InputQueue } from './input-queue.ts'

export const sizeOf = ({ cols, rows }: Pick<TerminalRecord, 'cols' | 'rows'>): string => `${cols}x${rows}`

/** The host's end of a terminal: the link of its agent, and the messages sent over it. */
export class HostEnd {
  readonly input: InputQueue
  link: AgentLink | null
  /** Monotonic milliseconds since when there is no link; null while linked. */
  awaySince: number | null
  /** Whether the current link accepts input, which is once its agent has answered. */
  #isTaken = false
  /** Size last sent to the agent. */
  #size: string

  /** `link` is null for a terminal that an earlier process opened; `client` returns the client that types. */
  constructor(
    record: TerminalRecord,
    link: AgentLink | null,
    now: number,
    client: () => TerminalClient | null,
  ) {
    this.link = link
    this.awaySince = link ? null : now
    this.#size = sizeOf(record)
    this.input = new InputQueue(record.id, client, link !== null)
  }

  /** Returns the sequence of the agent's last output; -1 before any. */
  linked(link: AgentLink, record: TerminalRecord): number {
    this.link = link
    this.awaySince = null
    this.#size = sizeOf(record)
    const reported = link.hello?.terminals?.find(({ sessionId }) => sessionId === record.id)
    return reported?.lastSequence ?? -1
  }

  unlinked(now: number): void {
    this.#isTaken = false
    this.link = null
    this.input.linked(null)
    this.awaySince ??= now
  }

  /**
   * Starts sending input, with MACs if the agent gave a key. Returns true the first time; throws for an
   * invalid key.
   */
  take(record: TerminalRecord, agentKey: string | undefined, typed: TypedCount | undefined): boolean {
    if (!this.link) return false
    if (agentKey !== undefined) this.input.agree(agentKey)
    if (this.#isTaken) return false
    this.#isTaken = true
    this.input.linked(this.link, typed)
    if (this.#size !== sizeOf(record)) this.resize(record)
    return true
  }

  resize({ cols, rows }: TerminalRecord): void {
    if (!this.#isTaken) return
    this.#size = sizeOf({ cols, rows })
    this.input.resize(cols, rows)
  }

  /** Returns whether the acknowledgement was sent. */
  acknowledge(sessionId: string, sequence: number): boolean {
    return this.#isTaken && this.link?.send('TERMINAL_ACK', { sessionId, sequence }) === true
  }
}
