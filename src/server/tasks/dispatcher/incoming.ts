import type { ScriptComplete } from '../../../core/protocol/messages.ts'
import type { AgentLink } from '../../storage/ports/agent-link.ts'

/** An end that came before all output up to its `lastSequence` was stored: it settles when that is. */
export interface EarlyEnd {
  readonly link: AgentLink
  readonly complete: ScriptComplete
  /** Monotonic milliseconds when it came, or the last output since. */
  at: number
}

/** What comes in of one execution over the links of its host. */
export interface Incoming {
  /** Appends under way, and when the last one of them ends. */
  writing: number
  appended: Promise<void>
  /** What is stored, and whether an acknowledgement of it is about to leave. */
  storedSequence: number
  acknowledging: boolean
  early: EarlyEnd | null
}
