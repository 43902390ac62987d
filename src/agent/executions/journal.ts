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
import { checkedJson, hasCheck, withoutCheck } from '../../disk/checked-json.ts'
import { type Entry, entriesOf, entryKinds, fold, isExpired, type JournaledExecution } from './journaled.ts'

const datasync = promisify(fdatasync)
const compactAbove = 4 * 1024 * 1024

const format = 1
const newline = 10

/** With the id of the key of the server that gave it: it says nothing to another one. */
type KeptMark = RunMark & { keyId: string }

/** As JSON each line has a check, but for those of 0.1.0. */
type Line = (Entry & { runMark?: KeptMark }) | Head

interface Head {
  e: 'store'
  storeId: string
  format: typeof format
  /** How many lines had been written before those that follow; absent in journals of 0.1.0. */
  sequence?: number
  /** As the newest of the lines below it. */
  runMark?: KeptMark
}

/** What an older version would have to leave out could be the very line that forbids a second start (reliability F18). */
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

/** What stands in the journal at one place; null where that is not what was written. */
function lineOf(bytes: Buffer): Line | null {
  const json = withoutCheck(bytes)
  try {
    return json && (JSON.parse(json.toString('utf8')) as Line)
  } catch {
    return null
  }
}

/** The last line, where only its end is not what was written. */
function lastLineOf(tail: Buffer): Line | null {
  const whole = [tail, tail.subarray(0, -1)].find(hasCheck)
  return whole ? lineOf(Buffer.from(whole)) : null
}

/** A write that was cut off, on which nobody relied, has no end, or runs of zeros where the file grew first. */
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
        hint: `move it aside: mv '${path}' '${path}.damaged'; the agent then starts with an empty journal, and the server counts what ran here as LOST`,
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
 * What this agent knows of every execution, one JSON line a change. An appended line survives the death of the agent
 * at once and the loss of power after `sync`. Executions are remembered until 24 h after their acknowledgement.
 */
export class Journal {
  readonly storeId: string
  readonly records: Map<string, JournaledExecution> = new Map()
  /** How many lines were ever written; goes back only where the file does. */
  sequence: number
  /** The newest that a server gave; it reaches the disk with the next execution that is received. */
  #mark: KeptMark | null = null
  readonly #path: string
  readonly #monotonic: () => number
  readonly #openedAt: number
  /** Its own time at the opening. */
  readonly #base: number
  #fd: number
  #size = 0
  /** False while the file may still lose its name to the one it took the place of. */
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
        // What is kept of the line is written again without it.
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
      // On a full disk the old file serves on: what is still there has to be known, and ended in time.
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
   * Milliseconds of the journal's own time: it goes on from the newest line there is, and only while an agent lives. So
   * no step of the machine's clock makes a tombstone old before its time (reliability F13).
   */
  now(): number {
    return Math.round(this.#base + this.#monotonic() - this.#openedAt)
  }

  /** Cancels whose execution has not come. */
  get earlyCancels(): number {
    let count = 0
    for (const record of this.records.values()) if (record.cancelledAt && !record.complete) count += 1
    return count
  }

  /** The newest mark of the server with this key; null where the newest is another server's. */
  markFrom(keyId: string): RunMark | null {
    if (this.#mark?.keyId !== keyId) return null
    const { keyId: _, ...mark } = this.#mark
    return mark
  }

  /** Takes a mark of the server with this key: of one start the highest, of another that one. */
  noteMark({ run, sequence, mac }: RunMark, keyId: string): void {
    const known = this.markFrom(keyId)
    if (run === known?.run && sequence < known.sequence) return
    this.#mark = { run, sequence, ...(mac !== undefined && { mac }), keyId }
  }

  /** Throws when the disk refuses the line; then it is as if it had never been appended. */
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

  /** Settles when all that was appended before is on disk. Callers that come during one fdatasync share the next. */
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

  /** Takes back a start that never came to be (`neverBegan`); durable when it returns. Throws when the disk refuses: then it stays. */
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

  /** A file that is longer than it need be is no trouble: the next attempt comes when it has doubled. */
  #compactIfPossible(): void {
    try {
      this.compact()
    } catch {
      this.#sizeAfterCompaction = this.#size
    }
  }

  /** Forgets what is past its time, and writes the rest to a new file that takes the place of the old one. */
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
    // A sync that is under way on the old file may still hold its descriptor.
    if (previous >= 0) void this.#syncs.run(() => closeSync(previous))
    this.#size = text.length
    this.#sizeAfterCompaction = text.length
    this.#place()
  }

  /** An older version would not take a file with lines of gates, also of what is over. */
  close(): void {
    if (this.#hasGates) this.#compactIfPossible()
    fsyncSync(this.#fd)
    closeSync(this.#fd)
  }
}
