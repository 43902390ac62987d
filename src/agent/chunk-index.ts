import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'

/** `marker` stands for bytes left out; its `offset` is how many, and it is shown on the stream in `length`. */
export type ChunkKind = 'stdout' | 'stderr' | 'marker'
export interface ChunkEntry {
  readonly kind: ChunkKind
  readonly offset: number
  readonly length: number
}

const kinds: readonly ChunkKind[] = ['stdout', 'stderr', 'marker']
const entryBytes = 12

/**
 * Where each chunk of output was cut, by its sequence: 12 bytes an entry, written before the chunk is first sent. So
 * whatever is sent again, after a reconnect or a restart of the agent, is the same (contract §4 "none twice").
 */
export class ChunkIndex {
  readonly #fd: number
  #count: number

  constructor(path: string) {
    this.#fd = openSync(path, 'a+', 0o600)
    this.#count = Math.floor(fstatSync(this.#fd).size / entryBytes)
    ftruncateSync(this.#fd, this.#count * entryBytes)
  }

  get count(): number {
    return this.#count
  }

  append(entry: ChunkEntry): void {
    const bytes = Buffer.alloc(entryBytes)
    bytes.writeUInt8(kinds.indexOf(entry.kind), 0)
    bytes.writeUIntBE(entry.offset, 1, 6)
    bytes.writeUInt32BE(entry.length, 8)
    writeSync(this.#fd, bytes)
    this.#count += 1
  }

  at(sequence: number): ChunkEntry {
    const bytes = Buffer.alloc(entryBytes)
    readSync(this.#fd, bytes, 0, entryBytes, sequence * entryBytes)
    return {
      kind: kinds[bytes.readUInt8(0)] ?? 'stdout',
      offset: bytes.readUIntBE(1, 6),
      length: bytes.readUInt32BE(8),
    }
  }

  *entries(): Generator<ChunkEntry> {
    for (let sequence = 0; sequence < this.#count; sequence += 1) yield this.at(sequence)
  }

  /** Drops all from `count` on. */
  truncate(count: number): void {
    ftruncateSync(this.#fd, count * entryBytes)
    this.#count = count
  }

  close(): void {
    closeSync(this.#fd)
  }
}
