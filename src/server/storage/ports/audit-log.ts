import type {
  AuditDetail,
  AuditEntry,
  AuditFacts,
  AuditFilter,
  AuditHead,
  AuditObject,
  AuditOutcome,
} from '../../../core/audit.ts'
import type { Page } from '../../../core/protocol/http/common.ts'

/** What is to be recorded; `at` is the time of the call where it is left out. */
export type AuditEvent = Omit<AuditFacts, 'at'> & { at?: string }

/** Records an action of the server itself; resolves when it is durable, or refused and logged. */
export type RecordEvent = (
  action: string,
  object: AuditObject | null,
  outcome: AuditOutcome,
  detail: AuditDetail,
) => Promise<void>

/** A page of the newest entries, or of those before the entry `before`. */
export type ListQuery = AuditFilter & {
  readonly page?: number
  readonly offset?: number
  readonly size?: number
  readonly before?: number
}
export type RawQuery = AuditFilter & { readonly after?: number }

/** The audit log: append-only, one hash chain, whoever writes it (contract §3). */
export interface AuditLog {
  /** Resolves when the entry is durable; entries of one server keep the order of its calls. Rejects with `unavailable`. */
  append(event: AuditEvent): Promise<AuditEntry>
  /** Newest first. */
  list(query: ListQuery): Promise<Page<AuditEntry>>
  /**
   * The chained lines as they are stored, oldest first: those after the entry `after` that were durable at the call and that
   * pass the filter. They come in blocks of whole lines. Without a filter, damaged lines are included.
   */
  raw(which?: RawQuery): AsyncIterable<Buffer>
  head(): Promise<AuditHead>
  /** Why entries are refused just now (a full disk), or null. */
  readonly refusal: string | null
  /** Waits for what is under way. */
  close(): Promise<void>
}

/**
 * The head of the audit log, noted apart from it at every start, stop and hour: a log that was removed, emptied or cut at a
 * line while no server ran is told from one that ended there (S11). Whoever may write both can hide it; the heads in the
 * server's own log are for that.
 */
export interface NotedHead {
  /** A sentence that says what is missing from the log; null if it has everything up to the noted head. */
  missing(): Promise<string | null>
  note(): Promise<void>
}
