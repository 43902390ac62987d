import { type ErrorCode, type FieldFault, RsmError } from '../../../../core/errors.ts'
import type {
  TerminalMessageType,
  TerminalNotice,
  TerminalPayloads,
} from '../../../../core/protocol/terminal-messages.ts'
import type { UserCaller } from '../../ports/caller.ts'
import type { InputPlace } from '../../ports/terminal-client.ts'

/** Bytes of one message; longer ones are invalid. */
const longestMessage = 16 * 1024 * 1024
const headBytes = 8
const nothing = Buffer.alloc(0)

/** What a site of another server is asked; each method of `TerminalSite` but `attach`. */
export const methods = ['open', 'has', 'isAttachable', 'expect', 'end', 'live', 'handOver'] as const
export type Method = (typeof methods)[number]

/** JSON has no infinity: null is never. */
export type SentCaller = Omit<UserCaller, 'expiresAt' | 'idleAt'> & {
  readonly expiresAt: number | null
  readonly idleAt: number | null
}

interface SentError {
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

const finite = (time: number) => (Number.isFinite(time) ? time : null)

export const sentCaller = ({ expiresAt, idleAt, ...caller }: UserCaller): SentCaller => ({
  ...caller,
  expiresAt: finite(expiresAt),
  idleAt: finite(idleAt),
})

export const callerOf = ({ expiresAt, idleAt, ...caller }: SentCaller): UserCaller => ({
  ...caller,
  expiresAt: expiresAt ?? Number.POSITIVE_INFINITY,
  idleAt: idleAt ?? Number.POSITIVE_INFINITY,
})

/** The part of an error that goes to another server: the details of internal ones stay here. */
export function sentError(error: unknown): SentError {
  if (!(error instanceof RsmError))
    return { code: 'internal', message: 'the server of the session failed', fields: [] }
  const { code, message, fields, hint, retryAfter } = error
  return { code, message, fields, hint, retryAfter }
}

export function errorOf({ code, message, fields, hint, retryAfter }: SentError): RsmError {
  return new RsmError(code, message, {
    fields,
    ...(hint === undefined ? {} : { hint }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  })
}

/** Error for a lost way to the server of a session, or one without an answer. */
export const wayLost = (message = 'The server of the session cannot be reached just now'): RsmError =>
  new RsmError('unavailable', message, { retryAfter: 1 })

/** A message as bytes: their number, that of its JSON text, the text, and what follows it as it is. */
export function encodeMessage(message: RelayMessage, body: Uint8Array = nothing): Buffer {
  const text = Buffer.from(JSON.stringify(message))
  const head = Buffer.allocUnsafe(headBytes)
  head.writeUInt32BE(text.length + body.length, 0)
  head.writeUInt32BE(text.length, 4)
  return Buffer.concat([head, text, body])
}

interface Read {
  readonly message: RelayMessage
  readonly body: Buffer
}

/** Puts messages together again, however their bytes are cut. */
export class MessageReader {
  #chunks: Buffer[] = []
  #size = 0
  /** Bytes of the next step: a head, or a message with its head. */
  #wanted = headBytes

  /** The messages that are complete with this. Throws for bytes that are no messages. */
  read(chunk: Buffer): Read[] {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    const found: Read[] = []
    while (this.#size >= this.#wanted) {
      const bytes = Buffer.concat(this.#chunks)
      const end = headBytes + bytes.readUInt32BE(0)
      if (end > longestMessage) throw new Error('no message of a relay')
      const isWhole = this.#size >= end
      if (isWhole) found.push(decode(bytes, end))
      this.#keep(isWhole ? bytes.subarray(end) : bytes)
      this.#wanted = isWhole ? headBytes : end
    }
    return found
  }

  #keep(bytes: Buffer): void {
    this.#chunks = [bytes]
    this.#size = bytes.length
  }
}

function decode(bytes: Buffer, end: number): Read {
  const textEnd = headBytes + bytes.readUInt32BE(4)
  if (textEnd > end) throw new Error('no message of a relay')
  const message = JSON.parse(bytes.toString('utf8', headBytes, textEnd)) as RelayMessage
  return { message, body: bytes.subarray(textEnd, end) }
}
