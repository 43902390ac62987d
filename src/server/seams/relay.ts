import type {
  Attachment,
  AttachOptions,
  NewTerminal,
  TerminalClient,
  TerminalView,
} from '../terminals/client.ts'
import type { Member } from './ownership.ts'
import type { TerminalRecord } from './records/terminal.ts'

/** The terminal sessions of one server, as any server of the store reaches them. Errors cross with their codes. */
export interface TerminalSite {
  /** Opens a session on a host whose agent is linked there. `conflict` says why it can't be. */
  open(session: NewTerminal): Promise<void>
  /** Whether it knows more of this session than the store. */
  has(sessionId: string): Promise<boolean>
  /** Whether it is open, or its client has not received all of its output yet. */
  isAttachable(sessionId: string): Promise<boolean>
  /** `gone` for one that is not attachable; `invalid` for an `after` beyond its output. */
  expect(sessionId: string, after: number | null): Promise<void>
  /** Answers at once. Throws, or closes the client, where the session has ended meanwhile. */
  attach(sessionId: string, client: TerminalClient, options: AttachOptions): Attachment
  /** Ends it, if it is open; resolves when that is on disk. `unavailable`: it has ended, and the store takes no more just now. */
  end(sessionId: string, reason: string): Promise<void>
  live(record: TerminalRecord): Promise<TerminalView>
  /**
   * Gives a session away to the server that its agent has linked to: its recording is whole on disk, and its clients are
   * told to come back. Null where it is not open here, or of another host.
   */
  handOver(sessionId: string, hostId: number): Promise<TerminalRecord | null>
}

/**
 * The way of terminal frames between the servers of a store: a session is with the server that has its agent's link, its
 * clients may be at any. What a client and its attachment are told arrives in order. It is bounded by what the client has
 * not acknowledged (P43) and by `hold`. When the way is lost, the client is closed and the attachment is told `gone`;
 * the client comes back with `after`, so that no frame need be kept between servers (P42).
 */
export interface Relay {
  /** Lets other servers reach the sessions of this server until the returned function is called. */
  serve(member: Member, site: TerminalSite): () => void
  /** Null where this life of the server serves none. */
  at(server: Member): Promise<TerminalSite | null>
  /** Whoever has a session; null: nobody who serves. */
  having(sessionId: string): Promise<TerminalSite | null>
}
