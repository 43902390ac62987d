import type { Room } from '../../../disk/disk.ts'

/**
 * The bytes of files that go to hosts or come from them, by the id of the file. What they are, whose, and whether they are
 * whole stands in the store; this one knows bytes only.
 */
export interface Files {
  /** Bytes of it that are durable; 0 where there is none. */
  size(id: string): Promise<number>
  /**
   * Adds bytes behind the first `offset`. Resolves with the size when all of them are durable; where `bytes` breaks off it
   * rejects with that error, and what had come by then is durable too. Errors: `WrongOffset` where it has another size, or
   * another writer; `unavailable` where there is no room.
   */
  append(id: string, offset: number, bytes: AsyncIterable<Uint8Array>): Promise<number>
  /** Drops what is behind the first `to` of a file of `end` bytes that is not finished. Errors: `WrongOffset` as of `append`. */
  cut(id: string, end: number, to: number): Promise<void>
  /** No more will come. Files of one `content` take the room of one; null for what shares with none. May be repeated. */
  finish(id: string, content: string | null): Promise<void>
  /**
   * Its bytes from `from` up to, and without, `to`, both within its size; a piece is good until the next is asked for, which may take its
   * place. Rejects with `gone` where they are not there.
   */
  read(id: string, from: number, to: number): AsyncIterable<Uint8Array>
  remove(id: string): Promise<void>
  /** Of the disk that the bytes go to; null where this server cannot know it, and where it does not answer. */
  room(): Promise<Room | null>
  /** Of all that there are bytes of. */
  ids(): Promise<string[]>
}

/** Bytes were sent for another place than the end of the file, or beside another writer. */
export class WrongOffset extends Error {
  /** Where it ends. */
  readonly offset: number

  constructor(offset: number) {
    super(`the file has ${offset} bytes`)
    this.offset = offset
  }
}
