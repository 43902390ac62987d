import type { TypedCount } from '../terminals/terminal.ts'
import type { Message, Payloads, TerminalClosed } from './messages.ts'

/**
 * Subprotocol of our own terminal clients. They acknowledge output, so a reconnect gets exactly what they missed.
 * Other clients get the contract's messages only, and output not yet written to them.
 */
export const terminalSubprotocol = 'rsm.terminal.1'

/** Milliseconds in which a dropped client can reconnect (contract §7). */
export const reattachWindow = 60_000

/**
 * Messages between the server and a client of a terminal (contract §7), in the envelope of the agent's link.
 * TERMINAL_ATTACHED, TERMINAL_TYPED, TERMINAL_NOTICE and TERMINAL_ACK are for `rsm.terminal.1` only.
 */
export interface TerminalPayloads {
  TERMINAL_INPUT: Payloads['TERMINAL_INPUT']
  TERMINAL_RESIZE: Payloads['TERMINAL_RESIZE']
  /** From a client: all output up to `sequence` is displayed. The server sends at most 256 KiB unacknowledged. */
  TERMINAL_ACK: Payloads['TERMINAL_ACK']
  /** From a client: ends the session. */
  TERMINAL_CLOSE: Payloads['TERMINAL_CLOSE']
  /** `sequence` as counted by the agent; a reconnecting client passes the last one as `?after=`. */
  TERMINAL_OUTPUT: Required<Payloads['TERMINAL_OUTPUT']>
  TERMINAL_CLOSED: TerminalClosed
  /** First frame to a client; the next output has a `sequence` above `after`. */
  TERMINAL_ATTACHED: {
    sessionId: string
    hostname: string
    cols: number
    rows: number
    after: number
    /** Newest output at this moment; output up to it is a replay. */
    last: number
    /** Characters after the client's `after` that are no longer kept. */
    omitted: number
    recorded: boolean
    /** Read-only: input is refused. */
    watching: boolean
    watchers: string[]
    /** Input that the session accepted; null: a TERMINAL_TYPED follows. Absent from older servers. */
    typed?: TypedCount | null
  }
  /** The host reconnected and accepted this much input: the client sends the rest again. */
  TERMINAL_TYPED: { sessionId: string } & TypedCount
  TERMINAL_NOTICE: TerminalNotice
  ERROR: Payloads['ERROR']
}

/** Notice to a session's user, apart from the output; `message` is for people. */
export interface TerminalNotice {
  sessionId: string
  kind: 'watched' | 'unwatched' | 'host-away' | 'host-back' | 'recording-full'
  message: string
}

export type TerminalMessageType = keyof TerminalPayloads
export type TerminalMessage<T extends TerminalMessageType = TerminalMessageType> = {
  [K in T]: { type: K; id: string; timestamp: string; payload: TerminalPayloads[K] }
}[T]
export const clientSends = [
  'TERMINAL_INPUT',
  'TERMINAL_RESIZE',
  'TERMINAL_ACK',
  'TERMINAL_CLOSE',
  'ERROR',
] as const satisfies readonly TerminalMessageType[]
export type FromTerminalClient = Message<(typeof clientSends)[number]>
export type ToTerminalClient = TerminalMessage<
  | 'TERMINAL_ATTACHED'
  | 'TERMINAL_TYPED'
  | 'TERMINAL_OUTPUT'
  | 'TERMINAL_NOTICE'
  | 'TERMINAL_RESIZE'
  | 'TERMINAL_CLOSED'
  | 'ERROR'
>
