import { type FileHandle, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type AuditEntry,
  type AuditFilter,
  type AuditHead,
  chainEntry,
  parseHead,
  type Sha256,
  showHead,
} from '../../../core/audit.ts'
import { RsmError } from '../../../core/errors.ts'
import type { Page } from '../../../core/protocol/http/common.ts'
import { AppendLog } from '../../../disk/append-log.ts'
import { type Clock, isoTime } from '../../../disk/clock.ts'
import { type Disk, nullWhereMissing, writeFileDurably } from '../../../disk/durable.ts'
import type { Log } from '../../../disk/log.ts'
import type { Reserve } from '../../../disk/reserve.ts'
import { bounded, parseEntry, systemActor, unreadableAction, unreadableEntry } from '../audit-entry.ts'
import { pageOf, windowOf } from '../paging.ts'
import type { AuditEvent, AuditLog, ListQuery, NotedHead, RawQuery } from '../ports/audit-log.ts'
import {
  auditFileName,
  type Line,
  longestLine,
  type OpenedLog,
  offsetAfter,
  openLogFile,
  readBackward,
  readForward,
} from './audit-file.ts'

interface AuditLogOptions {
  directory: string
  storeId: string
  clock: Clock
  log: Log
  sha256: Sha256
  /** The disk cannot be trusted any more: nothing may be retried. */
  onFatal(error: unknown): void
  /** Milliseconds between checks whether a full disk has room again. */
  probeMilliseconds?: number
  /** Released when the disk is full. */
  reserve?: Reserve | null
  /** For tests: injects faults. */
  disk?: Disk
}

/** Maximum number of entries that wait for the disk; a request or a server event waits with each. */
const longestQueue = 100_000
const newline = Buffer.from('\n')

/** Opens the log; a new one begins with an entry that names the store. */
export async function openFileAuditLog(options: AuditLogOptions): Promise<AuditLog> {
  const found = await openLogFile(options.directory)
  const { size, cut } = found
  const opened = new FileAuditLog(found, options)
  const own = { actor: systemActor, ip: null, outcome: 'SUCCESS' } as const
  const store = { type: 'store', id: options.storeId, name: null }
  if (size === 0) await opened.append({ ...own, action: 'audit.begin', object: store, detail: {} })
  if (cut) {
    options.log.warn(cut, 'the end of the audit log was torn; it was cut off')
    const repair = { ...own, action: 'audit.repair', object: store, outcome: 'FAILED', detail: cut } as const
    // A full disk refuses it; the warning above has reported it.
    await opened.append(repair).catch(() => undefined)
  }
  return opened
}

class FileAuditLog implements AuditLog {
  readonly #options: AuditLogOptions
  readonly #file: FileHandle
  readonly #log: AppendLog
  /** Head that the next entry is chained to. */
  #last: AuditHead
  #durable: { readonly size: number; readonly head: AuditHead }
  #refused = 0

  constructor({ file, size, head }: OpenedLog, options: AuditLogOptions) {
    this.#file = file
    this.#last = head
    this.#durable = { size, head }
    this.#options = options
    this.#log = new AppendLog(
      { path: join(options.directory, auditFileName), handle: file, size },
      {
        name: 'the audit log',
        sync: 'batch',
        whenFull: 'the disk of the audit log is full; audited operations are refused until there is room',
        whenDeleted: 'stop the server, keep the rest of its audit directory, and start it again',
        probeMilliseconds: options.probeMilliseconds,
        refused: (fault, error) => {
          // A failed entry must leave no gap in the chain.
          this.#last = this.#durable.head
          if (fault === 'failed') return options.onFatal(error)
          if (fault === 'full') options.reserve?.giveUp(error)
          options.log.warn({ err: error }, 'the audit log refuses entries')
        },
        resumed: () => {
          if (options.reserve?.isGivenUp !== true) this.#resumed()
        },
        disk: options.disk,
      },
    )
    options.reserve?.onRestored(() => this.#resumed())
  }

  get refusal(): string | null {
    return (this.#log.refusal ?? this.#options.reserve?.refusal)?.message ?? null
  }

  async append(event: AuditEvent): Promise<AuditEntry> {
    if (this.#log.queueLength >= longestQueue)
      throw new RsmError('unavailable', 'too many audit entries wait for the disk')
    const refusal = this.#options.reserve?.refusal
    if (refusal) {
      this.#refused++
      throw refusal
    }
    const at = event.at ?? isoTime(this.#options.clock.now())
    const { line, entry } = chainEntry(this.#last, bounded({ ...event, at }), this.#options.sha256)
    const head = { id: entry.id, hash: entry.hash }
    if (this.#log.refusal === null) this.#last = head
    try {
      const size = await this.#log.append([Buffer.from(`${line}\n`)])
      this.#durable = { size, head }
    } catch (error) {
      this.#refused++
      throw error
    }
    return entry
  }

  #resumed(): void {
    const detail = { refused: this.#refused }
    this.#refused = 0
    this.#options.log.info(detail, 'the audit log accepts entries again')
    const own = { actor: systemActor, ip: null, object: null, outcome: 'SUCCESS' } as const
    this.append({ ...own, action: 'audit.resume', detail }).catch(() => undefined)
  }

  list(query: ListQuery): Promise<Page<AuditEntry>> {
    return listEntries(this.#file, this.#durable.size, this.#durable.head.id, query)
  }

  raw({ after = 0, ...filter }: RawQuery = {}): AsyncIterable<Buffer> {
    const { size, head } = this.#durable
    const isWhole = Object.values(filter).every((value) => value === undefined)
    return this.#rawFrom(after, head.id, size, isWhole ? null : filter)
  }

  async *#rawFrom(
    after: number,
    lastId: number,
    end: number,
    filter: AuditFilter | null,
  ): AsyncGenerator<Buffer> {
    const from = after === 0 ? 0 : after >= lastId ? end : await offsetAfter(this.#file, end, after)
    if (filter === null) return yield* this.#bytes(from, end)
    const matches = matcherOf(filter)
    const needles = needlesOf(filter)
    for await (const lines of readForward(this.#file, from, end)) {
      const kept = lines.filter((line) => {
        const entry = needles.every((needle) => line.includes(needle)) ? parseEntry(line) : null
        return entry !== null && matches(entry)
      })
      if (kept.length > 0) yield Buffer.concat(kept.flatMap((line) => [line, newline]))
    }
  }

  /** Yields blocks that end with a line; a line longer than any entry is split. */
  async *#bytes(from: number, end: number): AsyncGenerator<Buffer> {
    for (let at = from; at < end; ) {
      const chunk = Buffer.allocUnsafe(Math.min(longestLine, end - at))
      const { bytesRead } = await this.#file.read(chunk, 0, chunk.length, at)
      if (bytesRead === 0) return
      const block = chunk.subarray(0, chunk.lastIndexOf(10, bytesRead - 1) + 1 || bytesRead)
      yield block
      at += block.length
    }
  }

  async head(): Promise<AuditHead> {
    return this.#durable.head
  }

  close(): Promise<void> {
    return this.#log.close()
  }
}

export function createNotedHead(path: string, audit: Pick<AuditLog, 'head'>): NotedHead {
  return {
    async missing() {
      const text = await readFile(path, 'utf8').catch(nullWhereMissing)
      if (text === null) return null
      const noted = parseHead(text.trim())
      const found = await audit.head()
      if (noted === undefined) return `${path} does not hold a head`
      if (found.id < noted.id)
        return `the audit log ends at entry ${found.id}, the head noted was ${showHead(noted)}`
      if (found.id === noted.id && found.hash !== noted.hash)
        return `entry ${found.id} of the audit log is not the one noted as ${showHead(noted)}`
      return null
    },
    note: async () => writeFileDurably(path, `${showHead(await audit.head())}\n`, 0o600),
  }
}

/**
 * Page, newest first, of a log of `size` bytes whose last entry is `lastId`. After a cursor (`before`) it
 * stops reading once it knows whether there is more, so that all pages together read the log once.
 */
async function listEntries(
  file: FileHandle,
  size: number,
  lastId: number,
  query: ListQuery,
): Promise<Page<AuditEntry>> {
  const { page: _page, offset: _offset, size: _size, before, ...filter } = query
  const { offset: first, limit: pageSize } = windowOf(query)
  const counted = before === undefined ? Number.POSITIVE_INFINITY : first + pageSize + 1
  const newest = before === undefined ? lastId : Math.min(lastId, before - 1)
  const endAfter = async (id: number) => (id >= lastId ? size : offsetAfter(file, size, id))
  if (Object.values(filter).every((value) => value === undefined)) {
    const total = Math.min(newest, counted)
    if (first >= newest) return pageOf([], total, query)
    return pageOf(await lastEntries(file, await endAfter(newest - first), pageSize), total, query)
  }
  const matches = matcherOf(filter)
  const wanted = needlesOf(filter)
  const content: AuditEntry[] = []
  let total = 0
  for await (const lines of readBackward(file, await endAfter(newest)))
    for (const line of lines) {
      if (!wanted.every((needle) => line.bytes.includes(needle))) continue
      const entry = entryOf(line)
      if (!matches(entry)) continue
      if (total >= first && content.length < pageSize) content.push(entry)
      total++
      if (total === counted) return pageOf(content, total, query)
    }
  return pageOf(content, total, query)
}

async function lastEntries(file: FileHandle, end: number, count: number): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = []
  for await (const lines of readBackward(file, end))
    for (const line of lines) {
      entries.push(entryOf(line))
      if (entries.length === count) return entries
    }
  return entries
}

/** Unreadable lines get the id 0, because theirs is unknown. */
const entryOf = ({ bytes, offset }: Line): AuditEntry =>
  parseEntry(bytes) ?? unreadableEntry(0, { offset, bytes: bytes.length })

function matcherOf({ action, actor, objectType, objectId, outcome, from, to }: AuditFilter) {
  const [since, until] = [from, to].map((time) => (time === undefined ? null : Date.parse(time)))
  return (entry: AuditEntry): boolean => {
    const at = Date.parse(entry.at)
    return (
      (action === undefined || entry.action === action) &&
      (actor === undefined || entry.actor.name === actor) &&
      (objectType === undefined || entry.object?.type === objectType) &&
      (objectId === undefined || (entry.object !== null && String(entry.object.id) === objectId)) &&
      (outcome === undefined || entry.outcome === outcome) &&
      (since == null || at >= since) &&
      (until == null || at <= until)
    )
  }
}

/** Texts in every matching line, so that most lines need not be parsed. */
function needlesOf({ action, actor, outcome }: AuditFilter): Buffer[] {
  const needle = (name: string, value: string) => Buffer.from(`"${name}":${JSON.stringify(value)}`)
  const found: Buffer[] = []
  if (action !== undefined && action !== unreadableAction) found.push(needle('action', action))
  if (actor !== undefined) found.push(needle('name', actor))
  if (outcome !== undefined && outcome !== 'FAILED') found.push(needle('outcome', outcome))
  return found
}
