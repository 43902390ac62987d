import type {
  TerminalMessageType,
  TerminalNotice,
  TerminalPayloads,
} from '../../../core/protocol/terminal-messages.ts'
import type { TerminalRecord } from '../records/terminal.ts'
import type { UserCaller } from './caller.ts'

/** Whoever shows a terminal to its user or watches it: `listeners` makes it, a terminal never sees a socket. */
export interface TerminalClient {
  readonly caller: UserCaller
  readonly ip: string | null
  /** Whether it speaks `rsm.terminal.1`, and so acknowledges what it has shown. */
  readonly acknowledges: boolean
  /** `json` is the text of the output as JSON, in UTF-8; `written` is called once the socket has taken it. */
  output(sequence: number, json: Uint8Array, written: () => void): void
  /** What its user is to know beside the terminal's output. */
  notify(notice: TerminalNotice): void
  send<T extends TerminalMessageType>(type: T, payload: TerminalPayloads[T]): void
  close(code: number, reason: string): void
  /** Ceases to read what the client sends, and goes on. */
  pause(): void
  resume(): void
}

/** A row of input, and the characters of it that come before. */
export interface InputPlace {
  readonly by: string
  readonly position: number
}

/** How a client wants to attach. */
export interface AttachOptions {
  /** The last sequence that it has shown; null for one that has nothing, and wants what is kept. */
  readonly after: number | null
  readonly watch: boolean
}

/** What a client does with the terminal that it is attached to; void once another has taken its place. */
export interface Attachment {
  /** `place` is undefined for a client that does not count its input. */
  input(data: string, frameId: string, place?: InputPlace): void
  resize(cols: number, rows: number): void
  acknowledge(sequence: number): void
  /** It leaves for good: the terminal ends. */
  leave(): void
  /** Its socket is gone. */
  gone(): void
  /** Both sides have closed the socket in order: whatever was sent before that has arrived. */
  parted(): void
}

/** A terminal that is asked for; nothing is opened for a caller who may no longer. */
export interface NewTerminal {
  readonly record: Omit<TerminalRecord, 'hostname' | 'agentId' | 'recorded'>
  readonly caller: UserCaller
}

/** A terminal as it stands now. */
export interface TerminalView {
  readonly record: TerminalRecord
  /** Who reads along. */
  readonly watchers: readonly string[]
  readonly recordingBytes: number
}
