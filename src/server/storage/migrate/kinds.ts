import type { AuditHead } from '../../../core/audit.ts'
import type { FindingCode } from '../../../core/checks/finding.ts'
import type { AgentStatus, HostStatus } from '../../../core/hosts/host.ts'
import type { BeatFacts } from '../../../core/protocol/http/hosts.ts'
import type { Progress, TaskRemains } from '../ports/outputs.ts'
import type { Greeting } from '../ports/presence.ts'
import type { AnyRecord, Noun } from '../records/records.ts'
import type { ScriptRecord } from '../records/script.ts'
import type { ExecutionRecord } from '../records/task.ts'

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
