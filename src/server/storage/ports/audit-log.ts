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

/** Event to record; `at` defaults to the time of the call. */
export type AuditEvent = Omit<AuditFacts, 'at'> & { at?: string }

/** Records an action of the server itself; resolves once it is durable, or refused and logged. */
export type RecordEvent = (
  action: string,
  object: AuditObject | null,
  outcome: AuditOutcome,
  detail: AuditDetail,
) => Promise<void>

/** Page of the newest entries, or of those before the entry `before`. */
export type ListQuery = AuditFilter & {
  readonly page?: number
  readonly offset?: number
  readonly size?: number
  readonly before?: number
}
export type RawQuery = AuditFilter & { readonly after?: number }

/** Audit log: append-only, one hash chain for all writers (contract §3). */
export interface AuditLog {
  /** Resolves once durable; keeps the order of one server's calls. Rejects with `unavailable`. */
  append(event: AuditEvent): Promise<AuditEntry>
  /** Newest first. */
  list(query: ListQuery): Promise<Page<AuditEntry>>
  /**
   * Chained lines as stored, oldest first: those after the entry `after` that were durable at the call and
   * pass the filter. Yields blocks of whole lines. Without a filter, damaged lines are included.
   */
  raw(which?: RawQuery): AsyncIterable<Buffer>
  head(): Promise<AuditHead>
  /** Why entries are refused at the moment (a full disk), or null. */
  readonly refusal: string | null
  close(): Promise<void>
}

/**
 * Head of the audit log, stored apart from it at every start, stop and hour. It shows whether the log was
 * removed, emptied or truncated at a line while no server ran (S11). An attacker who can write both can hide
 * that; the heads in the server's own log guard against it.
 */
export interface NotedHead {
  /** Sentence about what the log lacks; null if it is complete up to the noted head. */
  missing(): Promise<string | null>
  note(): Promise<void>
}
