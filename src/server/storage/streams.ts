import { createHash } from 'node:crypto'
import type { AuditHead } from '../../core/audit.ts'
import type { FindingCode } from '../../core/checks/finding.ts'
import type { AgentStatus, HostStatus } from '../../core/hosts/host.ts'
import type { BeatFacts } from '../../core/protocol/http/hosts.ts'
import type { Files } from './ports/files.ts'
import type { Progress, TaskRemains } from './ports/outputs.ts'
import type { Greeting } from './ports/presence.ts'
import type { FileRecord } from './records/file.ts'
import type { AnyRecord, Noun } from './records/records.ts'
import type { ScriptRecord } from './records/script.ts'
import type { ExecutionRecord } from './records/task.ts'

/** Item before the bytes of a task's log, a recording or a file. */
export interface Blob {
  readonly id: string
  readonly bytes: number
}

export interface Damage {
  readonly code: Extract<FindingCode, 'output' | 'results' | 'recording' | 'script-version' | 'file'>
  /** Owner of the data, as in `task 7`. */
  readonly of: string
  /** Sentence with the location. */
  readonly fault: string
  readonly path: string
  /** True if the items lack the data; otherwise they have it as found. */
  readonly isLeftOut?: boolean
}

/** Called once for each damaged file; the reader continues unless it throws. */
export type OnDamage = (damage: Damage) => void

/** Last known state of a host. Times are ISO 8601. */
export interface LastKnown {
  readonly hostId: number
  readonly status: HostStatus
  readonly reason: string | null
  readonly lastHeartbeatAt: string | null
  readonly agentStatus: AgentStatus | null
  readonly greeting: Greeting | null
  readonly says: Partial<BeatFacts>
  /** Null if it was linked. */
  readonly linkLostAt: string | null
  readonly warns: readonly string[]
  /** Whether its agent's token is revoked. */
  readonly revoked: boolean
}

/**
 * Contents of a store, in the order in which they are read and written. Both stores yield equal items for
 * equal contents; only the chunks of a blob and of the audit log differ.
 */
export interface Items {
  /** Highest ids given out, by noun. */
  identity: { readonly storeId: string; readonly lastIds: Readonly<Partial<Record<Noun, number>>> }
  /**
   * All records except executions, by noun and id. A run says how far it came; `isOpen`: it had not ended.
   */
  records: { readonly noun: Noun; readonly record: AnyRecord; readonly isOpen?: boolean }
  /** Executions of running tasks, by task and host; `progress` is null for those over SSH. */
  executions: { readonly execution: ExecutionRecord; readonly progress: Progress | null }
  /** `damaged`: the bytes as found, as Latin-1. */
  results: (TaskRemains & { readonly taskId: string }) | { readonly taskId: string; readonly damaged: string }
  /** Previous versions, by script and version. */
  versions: ScriptRecord
  /** Lines of a log, by task. */
  output: Blob | Uint8Array
  /** By session; `sums`: checksums of a damaged recording. */
  recordings: (Blob & { readonly sums?: string }) | Uint8Array
  /** By id; `content`: digest by which files share disk space. */
  files: (Blob & { readonly isComplete: boolean; readonly content: string | null }) | Uint8Array
  /** The lines of the log. */
  audit: Uint8Array
  /** Head of the log, and the head that a server noted. */
  heads: { readonly head: AuditHead; readonly noted: AuditHead | null }
  /** By host. */
  presence: LastKnown
  /** Samples of a host and a UTC day (`YYYY-MM-DD`), as sorted lines. */
  metrics: { readonly hostId: number; readonly day: string; readonly lines: readonly string[] }
}

export type Kind = keyof Items

export const kinds = [
  'identity',
  'records',
  'executions',
  'results',
  'versions',
  'output',
  'recordings',
  'files',
  'audit',
  'heads',
  'presence',
  'metrics',
] as const satisfies readonly Kind[]

/** Store at one moment; each call reads from the beginning. */
export type Reader = { readonly [K in Kind]: () => AsyncIterable<Items[K]> }

/** New store, written once in the order of `kinds`. */
export type Writer = { readonly [K in Kind]: (items: AsyncIterable<Items[K]>) => Promise<void> }

export const newline = 10

/** Lines of a stream, without newlines; the rest after the last newline is omitted. */
export async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let begun: Uint8Array[] = []
  for await (const block of bytes) {
    let start = 0
    for (let end = block.indexOf(newline); end >= 0; end = block.indexOf(newline, start)) {
      yield Buffer.concat([...begun, block.subarray(start, end)])
      begun = []
      start = end + 1
    }
    begun.push(block.subarray(start))
  }
}

/** Each blob of a stream with its bytes, which the caller must read to their end before the next blob. */
export async function* blobsOf<B extends object>(
  items: AsyncIterable<B | Uint8Array>,
): AsyncGenerator<{ blob: B; bytes: AsyncIterable<Uint8Array> }> {
  const iterator = items[Symbol.asyncIterator]()
  let next = await iterator.next()
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for (next = await iterator.next(); !next.done; next = await iterator.next())
      if (next.value instanceof Uint8Array) yield next.value
      else return
  }
  while (!next.done) {
    if (next.value instanceof Uint8Array) throw new Error('bytes without a blob before them')
    yield { blob: next.value, bytes: bytes() }
  }
}

/** Bytes of files, each after its blob item; skips files that a backup omitted. */
export async function* readFiles(
  files: Files,
  records: AsyncIterable<FileRecord> | Iterable<FileRecord>,
  damaged: OnDamage,
): AsyncGenerator<Items['files']> {
  const there = new Set(await files.ids())
  for await (const { id, sha256, isComplete, sealedKey } of records) {
    if (!there.has(id)) continue
    const bytes = await files.size(id)
    const content = isComplete && sealedKey === null ? sha256 : null
    yield { id, bytes, isComplete, content }
    const hash = createHash('sha256')
    for await (const piece of files.read(id, 0, bytes)) {
      if (content !== null) hash.update(piece)
      yield piece
    }
    if (content !== null && hash.digest('hex') !== content)
      damaged({ code: 'file', of: `file ${id}`, fault: 'its bytes differ from the upload', path: id })
  }
}

export async function writeFiles(files: Files, items: AsyncIterable<Items['files']>): Promise<void> {
  for await (const { blob, bytes } of blobsOf(items)) {
    await files.append(blob.id, 0, bytes)
    if (blob.isComplete) await files.finish(blob.id, blob.content)
  }
}
