import type { AgentHello, FromServer, Payloads } from '../../../core/protocol/messages.ts'
import type { LinkClaim } from './cluster.ts'

/**
 * Live link to an agent, as engine and terminals use it; `listeners` creates it and hides the socket.
 */
export interface AgentLink {
  readonly hostId: number
  readonly agentId: string
  /** Fences writes made for this link. */
  readonly claim: LinkClaim
  /** Null for a base-protocol agent. */
  readonly hello: AgentHello | null
  /** False once closing starts: no frame leaves any more, though the peer may take 30 s to close. */
  readonly isOpen: boolean
  /** False if the frame was not sent. `written` is called once the socket has taken it, or never will. */
  send<T extends FromServer['type']>(type: T, payload: Payloads[T], written?: () => void): boolean
  /** Counts a stray frame for the task or session `about`; too many close the link with 4400. */
  stray(about: string): void
  close(code: number, reason: string): void
}
