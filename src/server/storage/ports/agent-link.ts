import type { AgentHello, FromServer, Payloads } from '../../../core/protocol/messages.ts'
import type { LinkClaim } from './cluster.ts'

/** A live link to an agent, as engine and terminals see it: `listeners` makes it, they never see a socket. */
export interface AgentLink {
  readonly hostId: number
  readonly agentId: string
  /** Fences what is written for this link. */
  readonly claim: LinkClaim
  /** Null for a base-protocol agent. */
  readonly hello: AgentHello | null
  /** False once it closes: no frame leaves any more, though it may take the other side half a minute to go. */
  readonly isOpen: boolean
  /** False when the link is gone and the frame did not leave; `written` is called once the socket has taken it, or never will. */
  send<T extends FromServer['type']>(type: T, payload: Payloads[T], written?: () => void): boolean
  /** Counts a stray frame, for the task or session `about`; too many close the link with 4400. */
  stray(about: string): void
  close(code: number, reason: string): void
}
