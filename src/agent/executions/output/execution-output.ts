import { spawn } from 'node:child_process'
import { closeSync, ftruncateSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { faultPoint } from '#fault-point'
import type { Stream } from '../../../core/tasks/task.ts'
import {
  type ChunkEntry,
  ChunkIndex,
  headOf,
  incompleteTail,
  openSpool,
  readAt,
  remember,
  type Spool,
  saveOrigin,
  size,
  tailOf,
} from './spool.ts'

const chunkBytes = 64 * 1024
const tailBytes = 64 * 1024
/** Bytes by which a spool may outgrow its kept output before its middle is freed. */
const spoolSlack = 32 * 1024 * 1024

/** Shared, because chunks are read one at a time. */
const readBuffer = Buffer.allocUnsafeSlow(chunkBytes)

export interface Chunk {
  readonly stream: Stream
  /** The script's bytes, valid until the next read; usually UTF-8. */
  readonly content: Buffer
  /** Bytes that count against the window. */
  readonly bytes: number
}

export interface OutputSummary {
  lastSequence: number
  stdoutBytes: number
  stderrBytes: number
  truncated: boolean
}

/**
 * The output of one execution: two spool files that the script writes, and an index of their chunks. Past
 * `maxBytes` over both, the head and the last 64 KiB are kept (contract §4), a smaller tail if the limit is
 * below 128 KiB. Bytes between head and limit are cut only at the end, because they may become the tail.
 */
export class ExecutionOutput {
  readonly #index: ChunkIndex
  readonly #spools: Spool[] = []
  readonly #maxBytes: number
  readonly #headBytes: number
  #lastCut = 1
  #isClosed = false

  constructor(directory: string, maxBytes: number, isFinished: boolean) {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    this.#maxBytes = maxBytes
    this.#headBytes = maxBytes - Math.min(tailBytes, Math.floor(maxBytes / 2))
    this.#index = new ChunkIndex(join(directory, 'chunks'))
    try {
      for (const stream of ['stdout', 'stderr'] as const) this.#spools.push(openSpool(directory, stream))
      this.#restore(isFinished)
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Chunks cut so far; the last sequence is one less. */
  get count(): number {
    return this.#index.count
  }

  read(sequence: number): Chunk {
    const entry = this.#index.at(sequence)
    if (entry.kind === 'marker') {
      const content = Buffer.from(
        `\n[rsm: ${entry.offset} bytes left out here: the output passed its limit]\n`,
      )
      return { stream: entry.length === 0 ? 'stdout' : 'stderr', content, bytes: content.length }
    }
    const wanted = readBuffer.subarray(0, entry.length)
    const spool = this.#spool(entry.kind)
    // If the script has truncated the file since, other bytes are there now.
    size(spool)
    const got = readAt(spool, wanted, entry.offset)
    return { stream: entry.kind, content: wanted.subarray(0, got), bytes: entry.length }
  }

  /**
   * Cuts one more chunk from the running script's output; only a full one unless `isDue`. False if there is
   * nothing to send yet.
   */
  cut(isDue = true): boolean {
    return this.#cutUpTo(this.#headBytes, false, isDue ? 1 : chunkBytes)
  }

  /** Keeps a flood from filling the disk; call it whenever the spools have grown. */
  bound(): void {
    const sizes = this.#spools.map(size)
    if (sizes.reduce((sum, bytes) => sum + bytes, 0) < this.#maxBytes + spoolSlack) return
    while (this.cut()) {
      // Cut without sending, because the end of the head must be fixed before the middle is freed.
    }
    for (const [at, spool] of this.#spools.entries()) {
      const from = Math.max(spool.cut, spool.freed)
      const to = (sizes[at] ?? 0) - 2 * tailBytes
      if (to - from > spoolSlack / 2) this.#giveBack(spool, from, to)
    }
  }

  finish(): OutputSummary {
    for (const spool of this.#spools) spool.end = size(spool)
    const sizes = this.#spools.map((spool) => size(spool) + spool.dropped)
    const [stdoutBytes = 0, stderrBytes = 0] = sizes
    const truncated = stdoutBytes + stderrBytes > this.#maxBytes
    while (this.#cutUpTo(truncated ? this.#headBytes : this.#maxBytes, !truncated)) {
      // Until no output remains or the head is full.
    }
    if (truncated) this.#cutTail()
    return { lastSequence: this.count - 1, stdoutBytes, stderrBytes, truncated }
  }

  close(): void {
    this.#isClosed = true
    this.#index.close()
    for (const spool of this.#spools) closeSync(spool.fd)
  }

  #spool(stream: Stream): Spool {
    const spool = this.#spools[stream === 'stdout' ? 0 : 1]
    if (!spool) throw new TypeError(`no spool for ${stream}`)
    return spool
  }

  #restore(isFinished: boolean): void {
    let sequence = 0
    for (const entry of this.#index.entries()) {
      const isMarker = entry.kind === 'marker'
      // A marker without a journaled end: the agent died while cutting the tail, and none of it was sent.
      if (isMarker && !isFinished) break
      if (entry.kind !== 'marker') {
        const spool = this.#spool(entry.kind)
        // After a power loss the index may name bytes that never reached the disk.
        if (entry.offset + entry.length > size(spool)) break
        spool.cut = entry.offset + entry.length
      }
      sequence += 1
    }
    this.#index.truncate(sequence)
    for (const spool of this.#spools) {
      remember(spool)
      if (isFinished) spool.end = spool.cut
    }
  }

  #cutUpTo(limit: number, isFinal: boolean, least = 1): boolean {
    const kept = this.#spools.reduce((sum, spool) => sum + spool.cut, 0)
    // Alternate the streams, so that a flood on one does not hide the other.
    for (const at of [1 - this.#lastCut, this.#lastCut]) {
      const spool = this.#spools[at]
      if (!spool) continue
      const available = size(spool) - spool.cut
      let length = Math.min(chunkBytes, available, limit - kept)
      if (length < least) continue
      if (!(isFinal && length === available)) length -= incompleteTail(tailOf(spool, spool.cut + length))
      if (length <= 0) continue
      this.#append({ kind: spool.stream, offset: spool.cut, length })
      this.#lastCut = at
      return true
    }
    return false
  }

  #append(entry: ChunkEntry & { kind: Stream }): void {
    faultPoint('agent.chunk.before')
    this.#index.append(entry)
    faultPoint('agent.chunk.after')
    const spool = this.#spool(entry.kind)
    spool.cut = entry.offset + entry.length
    remember(spool)
  }

  #cutTail(): void {
    const budget = this.#maxBytes - this.#headBytes
    const [stdout, stderr] = [this.#spool('stdout'), this.#spool('stderr')]
    const rest = (spool: Spool) => size(spool) - spool.cut
    const [restOut, restErr] = [rest(stdout), rest(stderr)]
    const keepErr = Math.min(restErr, Math.max(Math.floor(budget / 2), budget - restOut))
    const keepOut = Math.min(restOut, budget - keepErr)
    const starts = [
      [stdout, size(stdout) - keepOut],
      [stderr, size(stderr) - keepErr],
    ] as const
    const aligned = starts.map(
      ([spool, start]) => [spool, start + (start > spool.cut ? headOf(spool, start) : 0)] as const,
    )
    const leftOut = aligned.reduce((sum, [spool, start]) => sum + start - spool.cut + spool.dropped, 0)
    const { count } = this.#index
    const cuts = aligned.map(([spool]) => [spool, spool.cut] as const)
    try {
      this.#appendTail({ kind: 'marker', offset: leftOut, length: keepOut < restOut ? 0 : 1 }, aligned)
    } catch (error) {
      // All or nothing, so that a retry starts from the same state; none of it has been sent.
      this.#index.truncate(count)
      for (const [spool, cut] of cuts) {
        spool.cut = cut
        remember(spool)
      }
      throw error
    }
  }

  #appendTail(marker: ChunkEntry, aligned: readonly (readonly [Spool, number])[]): void {
    this.#index.append(marker)
    faultPoint('agent.marker.after')
    for (const [spool, start] of aligned) {
      const end = size(spool)
      for (let offset = start; offset < end; ) {
        let length = Math.min(chunkBytes, end - offset)
        if (offset + length < end) length -= incompleteTail(tailOf(spool, offset + length))
        this.#append({ kind: spool.stream, offset, length })
        offset += length
      }
    }
  }

  /** Punches a hole if possible, which keeps all offsets. Else truncates and counts dropped bytes. */
  #giveBack(spool: Spool, from: number, to: number): void {
    spool.freed = to
    const length = to - from
    const child = spawn(
      'fallocate',
      ['--punch-hole', '--offset', String(from - spool.origin), '--length', String(length), spool.path],
      { stdio: 'ignore' },
    )
    let isSettled = false
    const fallBack = () => {
      if (isSettled || this.#isClosed) return
      isSettled = true
      try {
        const now = size(spool)
        const dropped = spool.dropped + now - spool.cut
        saveOrigin({ ...spool, dropped })
        ftruncateSync(spool.fd, Math.max(0, spool.cut - spool.origin))
        spool.dropped = dropped
        spool.seen = spool.cut
      } catch {
        // A full disk: `bound` retries when the spool has grown.
      }
      spool.freed = spool.cut
    }
    child.once('error', fallBack)
    child.once('exit', (code) => {
      if (code !== 0) fallBack()
    })
  }
}
