import type { TypedCount } from '../terminals/terminal.ts'
import type { Message, Payloads, TerminalClosed } from './messages.ts'

/**
 * The subprotocol that our own clients of a terminal offer: they acknowledge what they have, and so get exactly what
 * they miss when they return. Others are sent the contract's messages only, and what was not yet written to them.
 */
export const terminalSubprotocol = 'rsm.terminal.1'

/** A dropped client may come back within so many milliseconds (contract §7). */
export const reattachWindow = 60_000

/**
 * The messages between the server and a client of a terminal (contract §7), in the envelope of the agent's link.
 * TERMINAL_ATTACHED, TERMINAL_TYPED, TERMINAL_NOTICE and TERMINAL_ACK are for `rsm.terminal.1` only.
 */
export interface TerminalPayloads {
  TERMINAL_INPUT: Payloads['TERMINAL_INPUT']
  TERMINAL_RESIZE: Payloads['TERMINAL_RESIZE']
  /** From a client: all output up to `sequence` has been shown. Without one the server holds 256 KiB back at most. */
  TERMINAL_ACK: Payloads['TERMINAL_ACK']
  /** From a client: it leaves for good, and the session ends. */
  TERMINAL_CLOSE: Payloads['TERMINAL_CLOSE']
  /** `sequence` as the agent counts; a client that returns gives the last one as `?after=`. */
  TERMINAL_OUTPUT: Required<Payloads['TERMINAL_OUTPUT']>
  TERMINAL_CLOSED: TerminalClosed
  /** The first frame that a client gets; the next output has a `sequence` above `after`. */
  TERMINAL_ATTACHED: {
    sessionId: string
    hostname: string
    cols: number
    rows: number
    after: number
    /** The newest output that there is by now: up to it follows what was there before. */
    last: number
    /** Characters between the client's `after` and that, which are kept no longer. */
    omitted: number
    recorded: boolean
    /** Reads along only: its input is refused. */
    watching: boolean
    /** Names of those who read along. */
    watchers: string[]
    /** The input that the session has taken; null: a TERMINAL_TYPED follows. Older servers leave it out. */
    typed?: TypedCount | null
  }
  /** The host is back, and has taken this input: what follows it is to be sent again. */
  TERMINAL_TYPED: { sessionId: string } & TypedCount
  TERMINAL_NOTICE: TerminalNotice
  ERROR: Payloads['ERROR']
}

/** What the user of a session is told beside it; `message` is for people. */
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
