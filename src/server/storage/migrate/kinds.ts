import type { AuditHead } from '../../../core/audit.ts'
import type { AgentStatus, HostStatus } from '../../../core/hosts/host.ts'
import type { BeatFacts } from '../../../core/protocol/http/host-agent.ts'
import type { Progress, StoredEntry, TaskRemains } from '../ports/outputs.ts'
import type { Greeting } from '../ports/presence.ts'
import type { AnyRecord, Noun } from '../records/records.ts'
import type { ScriptRecord } from '../records/script.ts'
import type { ExecutionRecord } from '../records/task.ts'

/** A piece of output as it is stored; `json`: its text as JSON, quotes included. `at`: milliseconds since 1970. */
export interface OutputPiece extends Pick<StoredEntry, 'id' | 'hostId' | 'stream' | 'sequence' | 'phase'> {
  readonly taskId: string
  readonly at: number
  readonly json: Uint8Array
}

/** What was last known of a host. Times are ISO 8601. */
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
 * What a store consists of, in the order in which it moves. Streams of the same store are the same whichever engine has it, but
 * for where the bytes of a recording and of the audit log are divided.
 */
export interface Items {
  /** The highest ids that were given out, by noun. */
  identity: { readonly storeId: string; readonly lastIds: Readonly<Partial<Record<Noun, number>>> }
  /** All but executions, by noun and id; each start of a server says how far it came. */
  records: { readonly noun: Noun; readonly record: AnyRecord }
  /** Of running tasks, by task and host; `progress` is null for what goes over SSH. */
  executions: { readonly execution: ExecutionRecord; readonly progress: Progress | null }
  results: TaskRemains & { readonly taskId: string }
  /** Former versions, by script and version. */
  versions: ScriptRecord
  /** By task and id. */
  output: OutputPiece
  /** The beginning of a recording, or bytes of the one that has begun; by session. */
  recordings: { readonly id: string; readonly bytes: number } | Uint8Array
  /** The beginning of a file, or bytes of the one that has begun; by id. `content`: what it shares its room by. */
  files:
    | {
        readonly id: string
        readonly bytes: number
        readonly isComplete: boolean
        readonly content: string | null
      }
    | Uint8Array
  /** The lines of the log. */
  audit: Uint8Array
  /** Where the log ends, and where a server has noted that it did. */
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

/** A store that nobody changes, read from the beginning with each call. */
export type Reader = { readonly [K in Kind]: () => AsyncIterable<Items[K]> }

/** A store that is made, once, in the order of `kinds`. */
export type Writer = { readonly [K in Kind]: (items: AsyncIterable<Items[K]>) => Promise<void> }
