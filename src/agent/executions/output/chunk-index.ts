import { closeSync, existsSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { RsmError } from '../../../core/errors.ts'

/** `marker` stands for omitted bytes: `offset` is their number, `length` selects the stream that shows it. */
export type ChunkKind = 'stdout' | 'stderr' | 'marker'
export interface ChunkEntry {
  readonly kind: ChunkKind
  readonly offset: number
  readonly length: number
}

const kinds: readonly ChunkKind[] = ['stdout', 'stderr', 'marker']
const entryBytes = 12

/**
 * Where each chunk of output was cut, by sequence: 12 bytes an entry, written before the chunk is first sent.
 * So a chunk sent again, after a reconnect or an agent restart, is identical (contract §4).
 */
export class ChunkIndex {
  readonly #path: string
  /** Undefined before the first chunk, because many scripts print nothing; saves time on every host. */
  #fd: number | undefined
  #count = 0

  constructor(path: string) {
    this.#path = path
    if (!existsSync(path)) return
    const fd = this.#open()
    this.#count = Math.floor(fstatSync(fd).size / entryBytes)
    ftruncateSync(fd, this.#count * entryBytes)
  }

  get count(): number {
    return this.#count
  }

  /** Throws if the disk refuses the entry, even after a partial write; then nothing is appended. */
  append(entry: ChunkEntry): void {
    const bytes = Buffer.alloc(entryBytes)
    bytes.writeUInt8(kinds.indexOf(entry.kind), 0)
    bytes.writeUIntBE(entry.offset, 1, 6)
    bytes.writeUInt32BE(entry.length, 8)
    const fd = this.#open()
    if (writeSync(fd, bytes) !== entryBytes) {
      ftruncateSync(fd, this.#count * entryBytes)
      throw new RsmError('unavailable', 'the disk is full')
    }
    this.#count += 1
  }

  at(sequence: number): ChunkEntry {
    const bytes = Buffer.alloc(entryBytes)
    readSync(this.#open(), bytes, 0, entryBytes, sequence * entryBytes)
    return {
      kind: kinds[bytes.readUInt8(0)] ?? 'stdout',
      offset: bytes.readUIntBE(1, 6),
      length: bytes.readUInt32BE(8),
    }
  }

  *entries(): Generator<ChunkEntry> {
    for (let sequence = 0; sequence < this.#count; sequence += 1) yield this.at(sequence)
  }

  truncate(count: number): void {
    if (count === this.#count) return
    ftruncateSync(this.#open(), count * entryBytes)
    this.#count = count
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }

  #open(): number {
    this.#fd ??= openSync(this.#path, 'a+', 0o600)
    return this.#fd
  }
}
