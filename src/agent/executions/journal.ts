import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fdatasync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { faultPoint } from '#fault-point'
import { RsmError } from '../../core/errors.ts'
import { Mutex } from '../../core/mutex.ts'
import type { RunMark } from '../../core/protocol/messages.ts'
import { checkedJson, hasCheck, withoutCheck } from '../../disk/digest.ts'
import { type Entry, entriesOf, entryKinds, fold, isExpired, type JournaledExecution } from './journaled.ts'

const datasync = promisify(fdatasync)
const compactAbove = 4 * 1024 * 1024

const format = 1
const newline = 10

/** A mark and the id of its server's key, because it means nothing to other servers. */
type KeptMark = RunMark & { keyId: string }

/** Each JSON line has a checksum, except those of 0.1.0. */
type Line = (Entry & { runMark?: KeptMark }) | Head

interface Head {
  e: 'store'
  storeId: string
  format: typeof format
  /** Number of lines written before those that follow; absent in journals of 0.1.0. */
  sequence?: number
  /** The newest mark of the lines below. */
  runMark?: KeptMark
}

/** Rejects unknown lines, because a skipped one could forbid a second start (reliability F18). */
function assertKnown(path: string, line: { e: string; format?: number }, offset: number): void {
  const isKnown = line.e === 'store' ? line.format === format : entryKinds.has(line.e)
  if (isKnown) return
  const what = line.e === 'store' ? `format ${line.format}` : `a line of kind ${JSON.stringify(line.e)}`
  throw new RsmError(
    'unavailable',
    `${path} was written by a newer rsm: it has ${what} at offset ${offset}`,
    {
      hint: 'install that version again, or a newer one; nothing was changed',
    },
  )
}

/** Parses a journal line; null if its checksum does not match. */
function lineOf(bytes: Buffer): Line | null {
  const json = withoutCheck(bytes)
  try {
    return json && (JSON.parse(json.toString('utf8')) as Line)
  } catch {
    return null
  }
}

/** Parses the last line if only its newline is missing or wrong. */
function lastLineOf(tail: Buffer): Line | null {
  const whole = [tail, tail.subarray(0, -1)].find(hasCheck)
  return whole ? lineOf(Buffer.from(whole)) : null
}

/** A torn write, which nothing relied on: no newline, or runs of zeros if the file grew first. */
function isTorn(tail: Buffer): boolean {
  const end = tail.indexOf(newline)
  return (
    end < 0 || (end === tail.length - 1 && tail.includes('\0\0')) || /^[\0\s]*$/.test(tail.toString('latin1'))
  )
}

function parse(path: string, file: Buffer): { lines: Line[]; goodBytes: number } {
  const lines: Line[] = []
  for (let offset = 0; ; ) {
    const end = file.indexOf(newline, offset)
    const line = end < 0 ? lastLineOf(file.subarray(offset)) : lineOf(file.subarray(offset, end))
    if (line === null) {
      const tail = file.subarray(offset)
      if (isTorn(tail)) return { lines, goodBytes: offset }
      throw new RsmError('unavailable', `${path} is damaged: line ${lines.length + 1}, byte ${offset}`, {
        hint: `move it aside: mv '${path}' '${path}.damaged'; the agent then starts with an empty journal, and the server counts its running executions as LOST`,
      })
    }
    assertKnown(path, line, offset)
    lines.push(line)
    if (end < 0) return { lines, goodBytes: offset }
    offset = end + 1
  }
}

function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

/**
 * State of every execution, one JSON line per change. An appended line survives an agent crash at once, and a
 * power loss after `sync`. Executions are kept until 24 h after their acknowledgement.
 */
export class Journal {
  readonly storeId: string
  readonly records: Map<string, JournaledExecution> = new Map()
  /** Number of lines ever written; decreases only if the file is rolled back. */
  sequence: number
  /** The newest mark of a server; written with the next execution received. */
  #mark: KeptMark | null = null
  readonly #path: string
  readonly #monotonic: () => number
  readonly #openedAt: number
  readonly #base: number
  #fd: number
  #size = 0
  /** False while a power loss may still undo the rename of the compacted file. */
  #isInPlace = true
  #sizeAfterCompaction = 0
  #hasGates = false
  readonly #syncs = new Mutex()
  #nextSync: Promise<void> | null = null

  constructor(path: string, monotonic: () => number) {
    this.#path = path
    this.#monotonic = monotonic
    this.#openedAt = monotonic()
    const { lines, goodBytes } = parse(path, readIfThere(path))
    const head = lines[0]
    this.storeId = head?.e === 'store' ? head.storeId : randomBytes(12).toString('base64url')
    let newest = 0
    this.sequence = head?.e === 'store' ? (head.sequence ?? 0) + lines.length - 1 : 0
    for (const line of lines) {
      if (line.runMark) {
        this.#mark = line.runMark
        // The stored line is written again without its mark.
        delete line.runMark
      }
      if (line.e !== 'store') fold(this.records, line)
      this.#hasGates ||= line.e === 'gated'
      if ('at' in line) newest = Math.max(newest, line.at)
    }
    this.#base = newest || Date.now()
    this.#fd = -1
    try {
      this.compact()
    } catch (error) {
      // On a full disk, continue with the old file: its executions must be known, and ended in time.
      if (head?.e !== 'store') throw error
      if (this.#fd < 0) this.#reopen(goodBytes)
    }
  }

  #reopen(goodBytes: number): void {
    this.#fd = openSync(this.#path, 'a', 0o600)
    ftruncateSync(this.#fd, goodBytes)
    this.#size = goodBytes
    this.#sizeAfterCompaction = goodBytes
  }

  /**
   * Milliseconds of journal time: it continues from the newest entry and advances only while an agent runs.
   * So a step of the system clock cannot expire a tombstone early (reliability F13).
   */
  now(): number {
    return Math.round(this.#base + this.#monotonic() - this.#openedAt)
  }

  get earlyCancels(): number {
    let count = 0
    for (const record of this.records.values()) if (record.cancelledAt && !record.complete) count += 1
    return count
  }

  /** The newest mark of the server with this key; null if the newest is from another server. */
  markFrom(keyId: string): RunMark | null {
    if (this.#mark?.keyId !== keyId) return null
    const { keyId: _, ...mark } = this.#mark
    return mark
  }

  /** Stores a mark of the server with this key; within one run only a higher sequence replaces it. */
  noteMark({ run, sequence, mac }: RunMark, keyId: string): void {
    const known = this.markFrom(keyId)
    if (run === known?.run && sequence < known.sequence) return
    this.#mark = { run, sequence, ...(mac !== undefined && { mac }), keyId }
  }

  /** Throws if the disk refuses the line; then nothing is appended. */
  append(entry: Entry): void {
    if (this.#size > compactAbove && this.#size > 2 * this.#sizeAfterCompaction) this.#compactIfPossible()
    const isReceipt = entry.e === 'received' || entry.e === 'gated' || entry.e === 'started'
    const marked: Line = isReceipt && this.#mark ? { ...entry, runMark: this.#mark } : entry
    const line = Buffer.from(`${checkedJson(JSON.stringify(marked))}\n`)
    faultPoint(`agent.${entry.e}.before`)
    try {
      if (writeSync(this.#fd, line) !== line.length) throw new RsmError('unavailable', 'the disk is full')
    } catch (error) {
      ftruncateSync(this.#fd, this.#size)
      throw error
    }
    faultPoint(`agent.${entry.e}.after`)
    this.#size += line.length
    this.sequence += 1
    this.#hasGates ||= entry.e === 'gated'
    fold(this.records, entry)
  }

  /** Resolves when every line appended so far is on disk. Callers during one fdatasync share the next. */
  sync(): Promise<void> {
    this.#nextSync ??= this.#syncs.run(() => {
      this.#nextSync = null
      return this.#write()
    })
    return this.#nextSync
  }

  async #write(): Promise<void> {
    if (!this.#isInPlace) this.#place()
    await datasync(this.#fd)
  }

  #place(): void {
    const directory = openSync(dirname(this.#path), 'r')
    try {
      fsyncSync(directory)
    } finally {
      closeSync(directory)
    }
    this.#isInPlace = true
  }

  /**
   * Undoes a start that never began (`neverBegan`); durable on return. Throws, changing nothing, if the disk
   * refuses.
   */
  withdraw(taskId: string): void {
    const record = this.records.get(taskId)
    if (!record) return
    const { started, spawned } = record
    delete record.started
    delete record.spawned
    try {
      this.compact()
    } catch (error) {
      Object.assign(record, { ...(started && { started }), ...(spawned && { spawned }) })
      throw error
    }
    if (!record.received) this.records.delete(taskId)
  }

  /** A failed compaction is harmless: retry when the file has doubled. */
  #compactIfPossible(): void {
    try {
      this.compact()
    } catch {
      this.#sizeAfterCompaction = this.#size
    }
  }

  compact(): void {
    for (const [taskId, record] of this.records)
      if (isExpired(record, this.now())) this.records.delete(taskId)
    const entries = [...this.records.values()].flatMap(entriesOf)
    const head: Head = { e: 'store', storeId: this.storeId, format, sequence: this.sequence - entries.length }
    const lines: Line[] = [this.#mark ? { ...head, runMark: this.#mark } : head, ...entries]
    const text = Buffer.from(lines.map((line) => `${checkedJson(JSON.stringify(line))}\n`).join(''))
    const temporary = `${this.#path}.tmp`
    const { O_WRONLY, O_CREAT, O_TRUNC, O_APPEND } = constants
    const fd = openSync(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0o600)
    try {
      for (let written = 0; written < text.length; ) written += writeSync(fd, text, written)
      fsyncSync(fd)
      faultPoint('agent.compacted.before')
      renameSync(temporary, this.#path)
    } catch (error) {
      closeSync(fd)
      rmSync(temporary, { force: true })
      throw error
    }
    faultPoint('agent.compacted.after')
    const previous = this.#fd
    this.#fd = fd
    this.#isInPlace = false
    // A sync in flight may still use the old descriptor.
    if (previous >= 0) void this.#syncs.run(() => closeSync(previous))
    this.#size = text.length
    this.#sizeAfterCompaction = text.length
    this.#place()
  }

  /** Compacts away `gated` lines of finished executions, because older versions refuse such a file. */
  close(): void {
    if (this.#hasGates) this.#compactIfPossible()
    fsyncSync(this.#fd)
    closeSync(this.#fd)
  }
}
