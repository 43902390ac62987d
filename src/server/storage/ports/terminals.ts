import type { Readable } from 'node:stream'
import type {
  TerminalMessageType,
  TerminalNotice,
  TerminalPayloads,
} from '../../../core/terminals/terminal.ts'
import type { TerminalRecord } from '../records/terminal.ts'
import type { UserCaller } from './caller.ts'
import type { Orphans } from './outputs.ts'

/** Client that shows a terminal to its user or watches it; `listeners` creates it and hides the socket. */
export interface TerminalClient {
  readonly caller: UserCaller
  readonly ip: string | null
  /** Whether it speaks `rsm.terminal.1`, and so acknowledges what it has shown. */
  readonly acknowledges: boolean
  /** `json` is the output as JSON text, in UTF-8; `written` is called once the socket has taken it. */
  output(sequence: number, json: Uint8Array, written: () => void): void
  /** Shows a notice to the user, beside the terminal's output. */
  notify(notice: TerminalNotice): void
  send<T extends TerminalMessageType>(type: T, payload: TerminalPayloads[T]): void
  close(code: number, reason: string): void
  /** Stops reading from the client until `resume`. */
  pause(): void
  resume(): void
}

/** Position of input: a series of one client, and the characters of it that come before. */
export interface InputPlace {
  readonly by: string
  readonly position: number
}

export interface AttachOptions {
  /** Last sequence that it has shown; null if it has nothing and wants the replay. */
  readonly after: number | null
  readonly watch: boolean
}

/** Operations of a client on its terminal; no effect once another client has replaced it. */
export interface Attachment {
  /** `place` is undefined for a client that does not count its input. */
  input(data: string, frameId: string, place?: InputPlace): void
  resize(cols: number, rows: number): void
  acknowledge(sequence: number): void
  /** Leaves permanently: the terminal ends. */
  leave(): void
  gone(): void
  /** Both sides closed the socket cleanly, so everything sent before has arrived. */
  parted(): void
}

/** Requested terminal; it is not opened if the caller has lost the right meanwhile. */
export interface NewTerminal {
  readonly record: Omit<TerminalRecord, 'hostname' | 'agentId' | 'recorded'>
  readonly caller: UserCaller
}

export interface TerminalView {
  readonly record: TerminalRecord
  /** Names of watching users. */
  readonly watchers: readonly string[]
  readonly recordingBytes: number
}

/** Recording in progress. Its owner appends again only after the last append has settled. */
export interface RecordingWriter {
  /**
   * Resolves once the pieces, in order, survive a crash of this process; they are durable within 5 s, and at
   * `end`. If it rejects, none of them are kept.
   */
  append(pieces: readonly Uint8Array[]): Promise<void>
  /** Makes all of it durable. */
  end(): Promise<void>
}

/** Recordings of terminal sessions, by session id: append-only bytes. */
export interface Recordings {
  /** Starts with `header`; durable when it resolves. `failed`: it can no longer be made durable. */
  create(id: string, header: Uint8Array, failed: (error: unknown) => void): Promise<RecordingWriter>
  /** Bytes that an earlier process left, unchecked, from the start; after a crash the end may be torn. */
  content(id: string): AsyncIterable<Buffer>
  /** Reopens a recording of an earlier process: keeps its first `size` bytes and appends after them. */
  reopen(id: string, size: number, failed: (error: unknown) => void): Promise<RecordingWriter>
  /** First `bytes` bytes, default all. Errors: `gone` if expired, or damaged; then with the position. */
  read(id: string, bytes?: number): Promise<Readable>
  forget(id: string): Promise<void>
  /** Sessions with a recording, and when it was last written, in milliseconds since 1970. */
  list(): Promise<{ id: string; changedAt: number }[]>
  /** Moves recordings of unknown sessions aside; returns the folder. */
  moveAside(ids: readonly string[], now: number): Promise<string>
  readonly orphans: Pick<Orphans, 'sweep'>
}
