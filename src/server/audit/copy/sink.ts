import type { AuditHead } from '../../../core/audit.ts'

/** What takes the copy. One call at a time; each rejects with why it did not take it, and may be called again. */
export interface Sink {
  /** The newest entry that it holds, where it can tell. */
  holds(): Promise<AuditHead | null>
  /** Whole lines of the log, each with its newline. Resolves when they are as safe there as anyone can tell. */
  write(lines: Buffer): Promise<void>
  /** Milliseconds that a connection has to stand after a write until what was written counts as taken. */
  readonly settles: number
  /** Whether what was written and has not settled may be lost. Asking makes it false. */
  wasLost(): boolean
  /** Waits, not for long, until what was written is taken; answers whether it was. */
  close(): Promise<boolean>
}
