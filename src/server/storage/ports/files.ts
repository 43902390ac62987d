import type { Room } from '../../../disk/durable.ts'

/**
 * Bytes of files that go to hosts or come from them, by file id. Their names, owners and states are in the
 * store; this port knows bytes only.
 */
export interface Files {
  /** Durable bytes of the file; 0 if there is none. */
  size(id: string): Promise<number>
  /**
   * Appends bytes after the first `offset`. Resolves with the size once all are durable; if `bytes` fails,
   * rejects with that error, and the bytes received until then are durable too. Errors: `WrongOffset` if the
   * file has another size or another writer; `unavailable` if the disk is full.
   */
  append(id: string, offset: number, bytes: AsyncIterable<Uint8Array>): Promise<number>
  /** Truncates an unfinished file of `end` bytes to `to`. Errors: `WrongOffset`, as `append`. */
  cut(id: string, end: number, to: number): Promise<void>
  /** Marks the file as complete. Files of equal `content` share disk space; null never shares. Idempotent. */
  finish(id: string, content: string | null): Promise<void>
  /**
   * Bytes in the range [`from`, `to`), both within the size. A piece is valid until the next is requested,
   * which may reuse its buffer. Rejects with `gone` if they are missing.
   */
  read(id: string, from: number, to: number): AsyncIterable<Uint8Array>
  remove(id: string): Promise<void>
  /** Space of the disk that holds the files; null if unknown, or if it does not answer. */
  room(): Promise<Room | null>
  ids(): Promise<string[]>
}

/** The offset of an upload is not the end of the file, or the file has another writer. */
export class WrongOffset extends Error {
  readonly offset: number

  constructor(offset: number) {
    super(`the file has ${offset} bytes`)
    this.offset = offset
  }
}
