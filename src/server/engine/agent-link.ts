import type { AgentHello, Payloads } from '../../core/protocol/messages.ts'

/** Messages that the engine sends; terminals have their own way. */
type EngineMessage = 'EXECUTE_SCRIPT' | 'SCRIPT_ACK' | 'CANCEL_SCRIPT' | 'ERROR'

/** A live link to an agent, as the engine sees it: the hub makes it, the engine never sees a socket. */
export interface AgentLink {
  readonly hostId: number
  readonly agentId: string
  /** Null for an agent that knows only the seed's messages. */
  readonly hello: AgentHello | null
  /** False when the link is gone and the frame did not leave. */
  send<T extends EngineMessage>(type: T, payload: Payloads[T]): boolean
  close(code: number, reason: string): void
}
