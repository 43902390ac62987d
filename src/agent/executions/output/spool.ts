import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { RsmError } from '../../../core/errors.ts'
import type { Stream } from '../../../core/tasks/task.ts'

const fingerprintBytes = 32

/** The file of one of a script's streams, seen as a single byte stream even if the script truncates it. */
export interface Spool {
  readonly stream: Stream
  readonly path: string
  readonly fd: number
  /** Bytes from the beginning that have been cut into chunks. */
  cut: number
  /** Bytes dropped from a file that cannot have holes, or truncated by the script before they were read. */
  dropped: number
  /** Offset up to which the middle is freed. */
  freed: number
  /** Bytes written before the script truncated the file, by opening /dev/stdout with `>`. */
  origin: number
  seen: number
  /** End of the script's output, set when the script has ended; later bytes are ignored. */
  end?: number
  /** The last bytes that were cut: if others are there now, the file was truncated and grew again. */
  fingerprint: Buffer
}

export function openSpool(directory: string, stream: Stream): Spool {
  const path = join(directory, stream)
  const [origin = 0, dropped = 0] = readOrigin(path)
  // Non-blocking: opening a file that the script's user holds a lease on blocks (fcntl(2)). Callers retry.
  const fd = openSync(
    path,
    constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK,
    0o600,
  )
  return { stream, path, fd, cut: 0, dropped, freed: 0, origin, seen: 0, fingerprint: Buffer.alloc(0) }
}

/**
 * Bytes written so far. If a script truncates the file, cut bytes still count, and new bytes follow them.
 * Only uncut bytes are lost, as with any shell that writes to a file.
 */
export function size(spool: Spool): number {
  const inFile = fstatSync(spool.fd).size
  if (spool.end !== undefined && spool.origin + inFile >= spool.end && hasFingerprint(spool)) return spool.end
  if (spool.origin + inFile === spool.seen) return spool.seen
  if (spool.origin + inFile < spool.seen || !hasFingerprint(spool)) {
    // Bytes seen but not cut are lost: count them, so that the result does not look complete.
    const dropped = spool.dropped + Math.max(0, spool.seen - spool.cut)
    // Save first: if the disk refuses, nothing has changed, and the next call finds the same.
    saveOrigin({ ...spool, origin: spool.cut, dropped })
    spool.dropped = dropped
    spool.origin = spool.cut
    spool.fingerprint = Buffer.alloc(0)
  }
  spool.seen = spool.origin + inFile
  return spool.seen
}

export function remember(spool: Spool): void {
  const bytes = Buffer.alloc(Math.min(fingerprintBytes, spool.cut - spool.origin))
  spool.fingerprint = bytes.subarray(0, readAt(spool, bytes, spool.cut - bytes.length))
}

function hasFingerprint(spool: Spool): boolean {
  const bytes = Buffer.alloc(spool.fingerprint.length)
  readAt(spool, bytes, spool.cut - bytes.length)
  return bytes.equals(spool.fingerprint)
}

function originFile(path: string): string {
  return `${path}.origin`
}

/**
 * Saves for the next agent what the file itself does not show. Overwrites in place, never shorter than
 * before, so that a full disk keeps the old contents.
 */
export function saveOrigin({ path, origin, dropped }: Spool): void {
  const fd = openSync(originFile(path), constants.O_WRONLY | constants.O_CREAT, 0o600)
  try {
    writeFileSync(fd, `${origin} ${dropped}`)
  } finally {
    closeSync(fd)
  }
}

function readOrigin(path: string): number[] {
  return existsSync(originFile(path)) ? readFileSync(originFile(path), 'utf8').split(' ').map(Number) : []
}

/** Fills `bytes` from a stream offset; returns the number read. */
export function readAt(spool: Spool, bytes: Buffer, offset: number): number {
  const position = offset - spool.origin
  return position < 0 ? 0 : readSync(spool.fd, bytes, 0, bytes.length, position)
}

/** The last bytes before `end`: enough to detect a split character. */
export function tailOf(spool: Spool, end: number): Uint8Array {
  const from = Math.max(spool.cut, end - 4)
  const bytes = Buffer.alloc(end - from)
  return bytes.subarray(0, readAt(spool, bytes, from))
}

export function headOf(spool: Spool, start: number): number {
  const bytes = Buffer.alloc(4)
  return orphanedHead(bytes.subarray(0, readAt(spool, bytes, start)))
}

/** Number of bytes at the end that begin an incomplete UTF-8 character: 0 to 3. */
export function incompleteTail(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return 0
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return byte <= 0xf4 && needed > back ? back : 0
    }
  }
  return 0
}

/** Number of bytes at the beginning that continue an earlier character: 0 to 3. */
function orphanedHead(bytes: Uint8Array): number {
  let count = 0
  while (count < Math.min(3, bytes.length) && ((bytes[count] ?? 0) & 0xc0) === 0x80) count += 1
  return count
}

/** `marker` stands for omitted bytes: `offset` is their number, `length` selects the stream that shows it. */
type ChunkKind = 'stdout' | 'stderr' | 'marker'
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
