import type { ErrorCode, FieldFault } from '../../../../core/errors.ts'
import type {
  TerminalMessageType,
  TerminalNotice,
  TerminalPayloads,
} from '../../../../core/protocol/terminal-messages.ts'
import type { UserCaller } from '../../ports/caller.ts'
import type { InputPlace } from '../../ports/terminal-client.ts'

/** What a site of another server is asked; each method of `TerminalSite` but `attach`. */
export const methods = ['open', 'has', 'isAttachable', 'expect', 'end', 'live', 'handOver'] as const
export type Method = (typeof methods)[number]

/** JSON has no infinity: null is never. */
export type SentCaller = Omit<UserCaller, 'expiresAt' | 'idleAt'> & {
  readonly expiresAt: number | null
  readonly idleAt: number | null
}

export interface SentError {
  readonly code: ErrorCode
  readonly message: string
  readonly fields: readonly FieldFault[]
  readonly hint?: string | undefined
  readonly retryAfter?: number | undefined
}

/** From the server of a client. `id` counts calls and attachments of that server; `site` is the epoch of the site's server. */
export type ToSite =
  | { t: 'call'; id: number; site: number; method: Method; args: readonly unknown[] }
  | {
      t: 'attach'
      id: number
      site: number
      sessionId: string
      caller: SentCaller
      ip: string | null
      acknowledges: boolean
      after: number | null
      watch: boolean
    }
  /** Servers older than `place` leave it out. */
  | { t: 'input'; id: number; data: string; frameId: string; place?: InputPlace | undefined }
  | { t: 'resize'; id: number; cols: number; rows: number }
  | { t: 'acknowledge'; id: number; sequence: number }
  /** The client's socket has taken the first `count` outputs. */
  | { t: 'written'; id: number; count: number }
  | { t: 'leave' | 'gone' | 'parted'; id: number }

/** From the server of a site. */
export type ToClient =
  | { t: 'answer'; id: number; value: unknown }
  | { t: 'failed'; id: number; error: SentError }
  /** The attachment could not be made. */
  | { t: 'refused'; id: number; error: SentError }
  /** Its text follows as it goes to the client: JSON in UTF-8. */
  | { t: 'output'; id: number; sequence: number }
  | { t: 'tell'; id: number; notice: TerminalNotice }
  | { t: 'send'; id: number; type: TerminalMessageType; payload: TerminalPayloads[TerminalMessageType] }
  | { t: 'close'; id: number; code: number; reason: string }
  /** `done`: the attachment is no more, and nothing follows. */
  | { t: 'hold' | 'release' | 'done'; id: number }

export type RelayMessage = ToSite | ToClient
