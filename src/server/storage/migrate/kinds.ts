import type { AuditHead } from '../../../core/audit.ts'
import type { FindingCode } from '../../../core/checks/finding.ts'
import type { AgentStatus, HostStatus } from '../../../core/hosts/host.ts'
import type { BeatFacts } from '../../../core/protocol/http/host-agent.ts'
import type { Progress, TaskRemains } from '../ports/outputs.ts'
import type { Greeting } from '../ports/presence.ts'
import type { AnyRecord, Noun } from '../records/records.ts'
import type { ScriptRecord } from '../records/script.ts'
import type { ExecutionRecord } from '../records/task.ts'

/** The beginning of the bytes of a task's log, of a recording or of a file. */
export interface Blob {
  readonly id: string
  readonly bytes: number
}

/** A finding of a reader: data that is not what was written, or that cannot be read. */
export interface Damage {
  readonly code: Extract<FindingCode, 'output' | 'results' | 'recording' | 'script-version' | 'file'>
  /** As in `task 7`. */
  readonly of: string
  /** A sentence with the place. */
  readonly fault: string
  readonly path: string
  /** True where the items lack the data; otherwise they have it as it was found. */
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
  /** Null where it was linked. */
  readonly linkLostAt: string | null
  /** The measures that warn. */
  readonly warns: readonly string[]
  /** Whether its agent's token is. */
  readonly revoked: boolean
}

/**
 * Contents of a store, in the order in which they are read and written. Both engines yield the same items for the same store; only
 * the cuts between the bytes of a blob and of the audit log differ.
 */
export interface Items {
  /** The highest ids that were given out, by noun. */
  identity: { readonly storeId: string; readonly lastIds: Readonly<Partial<Record<Noun, number>>> }
  /** All but executions, by noun and id. Each start of a server says how far it came; `isOpen`: it had not ended. */
  records: { readonly noun: Noun; readonly record: AnyRecord; readonly isOpen?: boolean }
  /** Of running tasks, by task and host; `progress` is null for what goes over SSH. */
  executions: { readonly execution: ExecutionRecord; readonly progress: Progress | null }
  /** `damaged`: the bytes as they were found, as Latin-1. */
  results: (TaskRemains & { readonly taskId: string }) | { readonly taskId: string; readonly damaged: string }
  /** Former versions, by script and version. */
  versions: ScriptRecord
  /** Lines of a log, by task. */
  output: Blob | Uint8Array
  /** By session; `sums`: the checks of a damaged recording. */
  recordings: (Blob & { readonly sums?: string }) | Uint8Array
  /** By id; `content`: what it shares its room by. */
  files: (Blob & { readonly isComplete: boolean; readonly content: string | null }) | Uint8Array
  /** The lines of the log. */
  audit: Uint8Array
  /** The end of the log, and the one that a server noted. */
  heads: { readonly head: AuditHead; readonly noted: AuditHead | null }
  /** By host. */
  presence: LastKnown
  /** Samples of a host and a UTC day (`YYYY-MM-DD`), as lines in the order of their text. */
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

/** A store at one moment, read from the beginning with each call. */
export type Reader = { readonly [K in Kind]: () => AsyncIterable<Items[K]> }

/** A new store, written once in the order of `kinds`. */
export type Writer = { readonly [K in Kind]: (items: AsyncIterable<Items[K]>) => Promise<void> }
