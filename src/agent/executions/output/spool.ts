import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Stream } from '../../../core/tasks/task.ts'

const fingerprintBytes = 32

/** A file that a script writes one of its streams to, seen as one stream of bytes whatever the script does to it. */
export interface Spool {
  readonly stream: Stream
  readonly path: string
  readonly fd: number
  /** Bytes from the beginning that have been cut into chunks. */
  cut: number
  /** Bytes that were taken out of the file where it could not be made sparse, or that a script threw away unread. */
  dropped: number
  /** Bytes up to which the middle was given back. */
  freed: number
  /** Bytes that had been written before a script emptied the file, by opening /dev/stdout with `>`. */
  origin: number
  seen: number
  /** Where the script's output ends, set when the script has ended; later bytes are ignored. */
  end?: number
  /** The last bytes that were cut: where others stand in their place, the file was emptied and has grown again. */
  fingerprint: Buffer
}

export function openSpool(directory: string, stream: Stream): Spool {
  const path = join(directory, stream)
  const [origin = 0, dropped = 0] = readOrigin(path)
  // A script's user may hold a lease on it, which would be waited for (fcntl(2)): refused instead, it is tried again.
  const fd = openSync(
    path,
    constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK,
    0o600,
  )
  return { stream, path, fd, cut: 0, dropped, freed: 0, origin, seen: 0, fingerprint: Buffer.alloc(0) }
}

/**
 * Bytes written so far. Where a script emptied the file, what was cut counts as before, and new bytes follow it. Only
 * bytes that were not yet cut are lost then, as with any shell that writes into a file.
 */
export function size(spool: Spool): number {
  const inFile = fstatSync(spool.fd).size
  if (spool.end !== undefined && spool.origin + inFile >= spool.end && hasFingerprint(spool)) return spool.end
  if (spool.origin + inFile === spool.seen) return spool.seen
  if (spool.origin + inFile < spool.seen || !hasFingerprint(spool)) {
    // What was seen and not cut is gone: it counts as written, so that the result does not pass for complete.
    const dropped = spool.dropped + Math.max(0, spool.seen - spool.cut)
    // First on disk: where that is refused nothing has changed, and the next look finds the same.
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
 * What the file itself does not tell has to outlive the agent. Written over what stood there, which is never longer: so
 * a full disk that refuses it leaves the old.
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

/** Fills `bytes` from an offset of the stream; gives how many there were. */
export function readAt(spool: Spool, bytes: Buffer, offset: number): number {
  const position = offset - spool.origin
  return position < 0 ? 0 : readSync(spool.fd, bytes, 0, bytes.length, position)
}

/** The last bytes before `end`: enough to see whether a character is split there. */
export function tailOf(spool: Spool, end: number): Uint8Array {
  const from = Math.max(spool.cut, end - 4)
  const bytes = Buffer.alloc(end - from)
  return bytes.subarray(0, readAt(spool, bytes, from))
}

export function headOf(spool: Spool, start: number): number {
  const bytes = Buffer.alloc(4)
  return orphanedHead(bytes.subarray(0, readAt(spool, bytes, start)))
}

/** Number of bytes at the end that begin a character of UTF-8 whose rest has not come yet: 0 to 3. */
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

/** Number of bytes at the beginning that only continue a character that began before: 0 to 3. */
function orphanedHead(bytes: Uint8Array): number {
  let count = 0
  while (count < Math.min(3, bytes.length) && ((bytes[count] ?? 0) & 0xc0) === 0x80) count += 1
  return count
}
