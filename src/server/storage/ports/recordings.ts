import type { Readable } from 'node:stream'
import type { Orphans } from './outputs.ts'

/** A recording that grows. Its owner appends again only when the last append has ended. */
export interface RecordingWriter {
  /**
   * Resolves when the pieces, one behind the other, stand in the recording whatever becomes of this process; they are durable
   * within 5 s, and at `end`. Nothing of them stays where it rejects.
   */
  append(pieces: readonly Uint8Array[]): Promise<void>
  /** Makes all of it last. */
  end(): Promise<void>
}

/** The recordings of terminal sessions, by the id of the session: bytes that are only ever appended. */
export interface Recordings {
  /** A new one, which begins with `header`: durable when it resolves. `failed`: it can't be made to last any more. */
  create(id: string, header: Uint8Array, failed: (error: unknown) => void): Promise<RecordingWriter>
  /** What a former process left, unchecked, from its beginning; after a crash the end may be torn. */
  content(id: string): AsyncIterable<Buffer>
  /** Takes up one that a former process left: its first `size` bytes stay, and it grows from there. */
  reopen(id: string, size: number, failed: (error: unknown) => void): Promise<RecordingWriter>
  /** Its first `bytes` bytes, by default all. Errors: `gone` if it was removed for its age, or is damaged; then with the place. */
  read(id: string, bytes?: number): Promise<Readable>
  forget(id: string): Promise<void>
  /** The sessions that there are recordings of, and when those were last written, in milliseconds since 1970. */
  list(): Promise<{ id: string; changedAt: number }[]>
  /** Moves recordings of no known session aside; answers where to. */
  moveAside(ids: readonly string[], now: number): Promise<string>
  readonly orphans: Pick<Orphans, 'sweep'>
}
