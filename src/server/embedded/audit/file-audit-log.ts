import type { FileHandle } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { type AuditHead, chainEntry, type Sha256 } from '../../../core/audit.ts'
import { RsmError } from '../../../core/errors.ts'
import type { AuditEntry, AuditQuery } from '../../../core/protocol/http/audit.ts'
import type { Page } from '../../../core/protocol/http/common.ts'
import { isDiskFull } from '../../../disk/durable.ts'
import { bounded } from '../../audit/bounded.ts'
import { type Clock, isoTime } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { AuditEvent, AuditLog } from '../../seams/audit-log.ts'
import { type Disk, realDisk } from '../store/journal-file.ts'
import { listEntries } from './list.ts'
import { openLogFile } from './log-file.ts'

interface AuditLogOptions {
  directory: string
  storeId: string
  clock: Clock
  log: Log
  sha256: Sha256
  /** The disk can't be trusted any more: nothing may be tried again. */
  onFatal(error: unknown): void
  /** Milliseconds between looks whether a full disk has room again. */
  probeMilliseconds?: number
  /** For tests: where faults are put in. */
  disk?: Disk
}

interface Waiting {
  event: AuditEvent
  resolve: (entry: AuditEntry) => void
  reject: (error: unknown) => void
}

/** Most entries that wait for the disk; each is a request or an event of the server that waits with it. */
const longestQueue = 100_000
/** Most entries of one write, some hundred KiB. */
const largestBatch = 1000
/** What has to fit before a full disk counts as free again. */
const probeBytes = 64 * 1024
const chunkBytes = 64 * 1024
const system = { type: 'system', id: null, name: null, tokenId: null } as const

/** Opens the log; a new one begins with an entry that names the store. */
export async function openFileAuditLog(options: AuditLogOptions): Promise<AuditLog> {
  const { file, size, head, cut } = await openLogFile(options.directory)
  const opened = new FileAuditLog(file, size, head, options)
  const own = { actor: system, ip: null, outcome: 'SUCCESS' } as const
  const store = { type: 'store', id: options.storeId, name: null }
  if (size === 0) await opened.append({ ...own, action: 'audit.begin', object: store, detail: {} })
  if (cut) {
    options.log.warn(cut, 'the end of the audit log was torn; it was cut off')
    const repair = { ...own, action: 'audit.repair', object: store, outcome: 'FAILED', detail: cut } as const
    // A full disk refuses it; the line above has said it.
    await opened.append(repair).catch(() => undefined)
  }
  return opened
}

class FileAuditLog implements AuditLog {
  refusal: string | null = null
  readonly #file: FileHandle
  #size: number
  #head: AuditHead
  readonly #options: AuditLogOptions
  readonly #disk: Disk
  #waiting: Waiting[] = []
  #flushing: Promise<void> | null = null
  #probing: NodeJS.Timeout | null = null
  #refused = 0
  #closed = false

  constructor(file: FileHandle, size: number, head: AuditHead, options: AuditLogOptions) {
    this.#file = file
    this.#size = size
    this.#head = head
    this.#options = options
    this.#disk = options.disk ?? realDisk
  }

  append(event: AuditEvent): Promise<AuditEntry> {
    if (this.refusal !== null) {
      this.#refused++
      return Promise.reject(new RsmError('unavailable', this.refusal, { retryAfter: 5 }))
    }
    if (this.#closed) return Promise.reject(new RsmError('unavailable', 'the audit log is closed'))
    if (this.#waiting.length >= longestQueue)
      return Promise.reject(new RsmError('unavailable', 'too many audit entries wait for the disk'))
    return new Promise((resolve, reject) => {
      const at = event.at ?? isoTime(this.#options.clock.now())
      this.#waiting.push({ event: { ...event, at }, resolve, reject })
      this.#flushing ??= this.#flush()
    })
  }

  /** Group commit: all that came while the last fdatasync ran goes out in one write and one fdatasync. */
  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Callers whose entry has just become durable come back with the next within this turn: let them join.
      await setImmediate()
      const batch = this.#waiting.splice(0, largestBatch)
      try {
        const entries = await this.#write(batch)
        for (const [place, { resolve }] of batch.entries()) resolve(entries[place] as AuditEntry)
      } catch (error) {
        await this.#giveUp(batch, error)
      }
    }
    // In the same turn as the last look: whoever comes now starts anew.
    this.#flushing = null
  }

  /** Ids and hashes are given here, where the order is settled and what failed has left no gap. */
  async #write(batch: readonly Waiting[]): Promise<AuditEntry[]> {
    let head = this.#head
    let text = ''
    const entries = batch.map(({ event }) => {
      const { line, entry } = chainEntry(head, bounded(event), this.#options.sha256)
      head = { id: entry.id, hash: entry.hash }
      text += `${line}\n`
      return entry
    })
    const data = Buffer.from(text)
    await this.#writeAll(data)
    await this.#disk.datasync(this.#file.fd)
    this.#size += data.length
    this.#head = head
    return entries
  }

  async #writeAll(data: Buffer): Promise<void> {
    for (let done = 0; done < data.length; )
      done += await this.#disk.write(this.#file.fd, data.subarray(done), this.#size + done)
  }

  async #giveUp(batch: readonly Waiting[], error: unknown): Promise<void> {
    const full = isDiskFull(error)
    this.refusal = full
      ? 'the disk of the audit log is full; what has to be audited is refused until there is room'
      : 'the disk failed while writing the audit log; the server has to be started anew'
    const refusal = new RsmError('unavailable', this.refusal, { cause: error, retryAfter: 5 })
    const all = [...batch, ...this.#waiting.splice(0)]
    this.#refused += all.length
    let lost: unknown = full ? null : error
    try {
      // A full disk writes short before it fails: what is past the last good entry must not stay.
      if (full) await this.#disk.truncate(this.#file.fd, this.#size)
    } catch (failure) {
      lost = failure
    }
    for (const { reject } of all) reject(refusal)
    // After a failed fsync the page cache lies: a second try would prove nothing (reliability, facts).
    if (lost !== null) return this.#options.onFatal(lost)
    this.#options.log.warn({ err: error }, 'the audit log is refused by a full disk')
    this.#probe()
  }

  #probe(): void {
    if (this.#closed) return
    this.#probing = setTimeout(() => {
      void this.#tryAgain().then((free) => {
        if (!free) return this.#probe()
        this.refusal = null
        const detail = { refused: this.#refused }
        this.#refused = 0
        this.#options.log.info(detail, 'the audit log takes entries again')
        const own = { actor: system, ip: null, object: null, outcome: 'SUCCESS' } as const
        this.append({ ...own, action: 'audit.resume', detail }).catch(() => undefined)
      })
    }, this.#options.probeMilliseconds ?? 1000)
    this.#probing.unref()
  }

  async #tryAgain(): Promise<boolean> {
    let free = true
    try {
      await this.#writeAll(Buffer.alloc(probeBytes))
    } catch {
      free = false
    }
    try {
      await this.#disk.truncate(this.#file.fd, this.#size)
    } catch {
      return false
    }
    return free && !this.#closed
  }

  list(query: AuditQuery): Promise<Page<AuditEntry>> {
    return listEntries(this.#file, this.#size, this.#head.id, query)
  }

  raw(): AsyncIterable<Buffer> {
    return this.#bytesUpTo(this.#size)
  }

  async *#bytesUpTo(end: number): AsyncGenerator<Buffer> {
    for (let at = 0; at < end; ) {
      const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, end - at))
      const { bytesRead } = await this.#file.read(chunk, 0, chunk.length, at)
      if (bytesRead === 0) return
      yield chunk.subarray(0, bytesRead)
      at += bytesRead
    }
  }

  head(): AuditHead {
    return this.#head
  }

  async close(): Promise<void> {
    this.#closed = true
    if (this.#probing) clearTimeout(this.#probing)
    await this.#flushing
    await this.#file.close()
  }
}
