import type { Readable } from 'node:stream'
import type { Orphans } from './outputs.ts'

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
