import { largestScreen } from '../protocol/bounds.ts'
import type { Message, Payloads, TerminalClosed } from '../protocol/messages.ts'

export const terminalStatuses = ['OPEN', 'CLOSED'] as const
export type TerminalStatus = (typeof terminalStatuses)[number]

/** Characters of a session's command that its record keeps: a list of 500 whole scripts would be 100 MB. */
export const longestCommandShown = 1024

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
type TerminalMessage<T extends TerminalMessageType = TerminalMessageType> = {
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

const fallbackSize = { cols: 80, rows: 24 }

export type TypedInput = 'TERMINAL_INPUT' | 'TERMINAL_RESIZE'

/** Input accepted (contract §7): `count` characters of the stream `by` ('' before any; null if unknown). */
export interface TypedCount {
  readonly by: string | null
  readonly count: number
}

/** Info of HKDF-SHA256: binds the derived key to this session and to both X25519 keys. */
export function inputKeyInfo(sessionId: string, serverKey: string, agentKey: string): string {
  return `rsm typed input 1\0${sessionId}\0${serverKey}\0${agentKey}`
}

export function isSameCount(a: TypedCount, b: TypedCount): boolean {
  return a.by !== null && a.by === b.by && a.count === b.count
}

/** Counts a session's input, and separates new input from repeated input. */
export class TypedCounter implements TypedCount {
  by: string | null
  count: number

  constructor({ by, count }: TypedCount = { by: '', count: 0 }) {
    this.by = by
    this.count = count
  }

  /** Returns the new part; null if input before it is missing. A new stream begins at 0. */
  take({
    data,
    by,
    position = 0,
  }: Pick<Payloads['TERMINAL_INPUT'], 'data' | 'by' | 'position'>): string | null {
    const had = by === this.by ? this.count : 0
    if (position > had) return null
    const fresh = data.slice(had - position)
    this.by = by ?? null
    this.count = had + fresh.length
    return fresh
  }
}

/** Message to the user about lost input; `isAll` is false if more than these characters may be missing. */
export function missingInput(characters: number, isAll: boolean): string {
  const dropped = characters === 0 ? '' : `, and the ${characters} characters typed since are dropped`
  const what = isAll ? `${characters} characters of input are missing` : `input may be missing${dropped}`
  return `connection lost: ${what}; check the line before you continue`
}

/** Text that a MAC covers. Text of a user comes last, because only it can contain NUL. */
export function macText<T extends TypedInput>(type: T, payload: Payloads[T], counter: number): string {
  const what = 'data' in payload ? payload.data : `${payload.cols}x${payload.rows}`
  const place = 'by' in payload && payload.by !== undefined ? ` ${payload.by} ${payload.position}` : ''
  return `${type}\0${payload.sessionId}\0${counter}${place}\0${what}`
}

/** Clamps the size in a recording, an untrusted file, to one that a screen can have. */
export function recordingSize(cols: unknown, rows: unknown): { cols: number; rows: number } {
  const isSize = (count: unknown): count is number => Number.isInteger(count) && Number(count) >= 1
  if (!isSize(cols) || !isSize(rows)) return fallbackSize
  return { cols: Math.min(cols, largestScreen), rows: Math.min(rows, largestScreen) }
}
