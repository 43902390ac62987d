import type { AgentHello, FromServer, Payloads, RunMark } from '../../../core/protocol/messages.ts'
import type { TerminalRecord } from '../records/terminal.ts'
import type { Attachment, AttachOptions, NewTerminal, TerminalClient, TerminalView } from './terminals.ts'

/** Milliseconds for which a member counts as alive after it joined or renewed, by a monotonic clock. */
export const lease = 10_000
/** Milliseconds between renewals: two may fail before the lease expires. */
export const renewEvery = 3_000

/** One incarnation of a server; joining again under the same name starts another with a higher epoch. */
export interface Member {
  readonly name: string
  readonly epoch: number
}

/**
 * Owners of running tasks: the owner carries out the task's plan. A webhook is owned like a task, as
 * `webhook/ID`. The lease only decides when another server may take a task over; safety rests on `holds`,
 * which uses no clock.
 */
export interface Ownership {
  /** Fences the previous incarnation of this name: it no longer owns anything. */
  join(name: string): Promise<Member>
  /**
   * False if the member is fenced or has left: it must stop, or join again. A lapsed member renews and keeps
   * the tasks that were not claimed meanwhile.
   * Errors: `conflict` if a newer rsm has changed the store, so that this one must stop.
   */
  renew(member: Member): Promise<boolean>
  /** Request time of the current lease, monotonic ms; null if fenced, gone or in another process. */
  renewedAt(member: Member): number | null
  /** Hands over: all tasks of the member are free at once. */
  leave(member: Member): Promise<void>
  /** Claims the tasks that no living member owns; returns every listed task that the member owns now. */
  claim(member: Member, taskIds: readonly string[]): Promise<string[]>
  /** Drops tasks that have ended, or gives them away. Tasks of other members are not affected. */
  release(member: Member, taskIds: readonly string[]): Promise<void>
  /** Null if no living member owns it. */
  owner(taskId: string): Promise<Member | null>
  /** Whether this member's steps on the task still count: false once fenced, or the task is taken over. */
  holds(member: Member, taskId: string): Promise<boolean>
}

/** Claim on the link of a host. Its epoch fences writes made for that link. */
export interface LinkClaim {
  readonly hostId: number
  readonly agentId: string
  readonly server: Member
  /** Ascends over all claims: the higher of two is the newer. */
  readonly epoch: number
  /** ISO 8601. */
  readonly since: string
}

export interface Claimed {
  readonly claim: LinkClaim
  /** This replacement showed that two agents share one identity: new claims are refused from now on. */
  readonly isDuplicate: boolean
}

/** Maps each host to the server that has its link. The newest claim wins (contract §6, P12). */
export interface Links {
  /**
   * Null if refused because two agents share the host's identity (P13). Otherwise `superseded` is called once
   * a newer claim holds the host. That may be late, so a server that writes for a link checks its claim in
   * the same step.
   */
  claim(
    hostId: number,
    by: { server: Member; agentId: string },
    superseded: () => void,
  ): Promise<Claimed | null>
  /** Marks the link usable: an rsm agent has sent HELLO. No effect on a newer claim. */
  ready(claim: LinkClaim): Promise<void>
  /** Reports the link gone. No effect on a newer claim. */
  release(claim: LinkClaim): Promise<void>
  /** Null if no living server has a link. */
  holder(hostId: number): Promise<LinkClaim | null>
  /** Claims of links that are ready; other hosts are omitted. */
  holders(hostIds: readonly number[]): Promise<Map<number, LinkClaim>>
  /**
   * Whether new claims of the host are refused, as far as this server knows without asking; `claim` decides.
   * Three replacements within a minute mean two agents with one identity: the current link keeps the host for
   * five minutes (P13, reliability F12).
   */
  refuses(hostId: number): boolean
  /** Called every few seconds: ends expired refusals and returns their hosts, each to one server only. */
  expire(): Promise<number[]>
}

/**
 * Live link to an agent, as engine and terminals use it; `listeners` creates it and hides the socket.
 */
export interface AgentLink {
  readonly hostId: number
  readonly agentId: string
  /** Fences writes made for this link. */
  readonly claim: LinkClaim
  /** Null for a base-protocol agent. */
  readonly hello: AgentHello | null
  /** False once closing starts: no frame leaves any more, though the peer may take 30 s to close. */
  readonly isOpen: boolean
  /** False if the frame was not sent. `written` is called once the socket has taken it, or never will. */
  send<T extends FromServer['type']>(type: T, payload: Payloads[T], written?: () => void): boolean
  /** Counts a stray frame for the task or session `about`; too many close the link with 4400. */
  stray(about: string): void
  close(code: number, reason: string): void
}

/** Terminal sessions of one server, callable from any server of the store. Errors cross with their codes. */
export interface TerminalSite {
  /** Opens a session on a host whose agent is linked there. Rejects with `conflict` if that is impossible. */
  open(session: NewTerminal): Promise<void>
  /** Whether the server has state of this session beyond the store. */
  has(sessionId: string): Promise<boolean>
  /** Whether the session is open, or its client has not received all output yet. */
  isAttachable(sessionId: string): Promise<boolean>
  /** Rejects with `gone` if the session is not attachable, `invalid` if `after` is beyond its output. */
  expect(sessionId: string, after: number | null): Promise<void>
  /** Returns at once. Throws, or closes the client, if the session has ended meanwhile. */
  attach(sessionId: string, client: TerminalClient, options: AttachOptions): Attachment
  /** Ends an open session, durably. `unavailable`: it has ended, but the store refuses writes. */
  end(sessionId: string, reason: string): Promise<void>
  live(record: TerminalRecord): Promise<TerminalView>
  /**
   * Hands a session to the server that its agent has linked to, with a complete recording on disk, and tells
   * its clients to reconnect. Null if the session is not open here, or belongs to another host.
   */
  handOver(sessionId: string, hostId: number): Promise<TerminalRecord | null>
}

/**
 * Carries terminal frames between the servers of a store. A session lives on the server with its agent's
 * link; its clients may be on any. Messages to a client and to its attachment arrive in order, bounded by the
 * client's unacknowledged output (P43) and by `pause`. If the connection is lost, the client is closed and
 * the attachment gets `gone`. The client reconnects with `after`, so that servers need not buffer frames for
 * each other (P42).
 */
export interface Relay {
  /** Lets other servers reach this server's sessions until the returned function is called. */
  serve(member: Member, site: TerminalSite): () => void
  /** Null if this incarnation of the server serves no sessions. */
  at(server: Member): Promise<TerminalSite | null>
  /** Site of the server that has a session; null if none. Rejects if a live server does not answer. */
  having(sessionId: string): Promise<TerminalSite | null>
}

export interface ServerSeen {
  readonly name: string
  readonly version: string
  /** ISO 8601: when it joined. */
  readonly startedAt: string
  /** Address that the server advertises; null before it listens. */
  readonly address: string | null
  /** ISO 8601. Its tasks cannot be taken over before; if it is past, the server counts as gone. */
  readonly leaseUntil: string
  readonly isLiving: boolean
  readonly links: number
  readonly tasks: number
}

export interface Peer extends Member {
  /**
   * Sealed with the key of all servers (S04), so that write access to the database cannot redirect a server.
   */
  readonly endpoint: string
}

/** Maximum and busy connections of a pool, and calls that wait for one. */
export interface PoolLoad {
  readonly size: number
  readonly busy: number
  readonly waiting: number
}

export interface Hearing {
  readonly isListening: boolean
  /** Last of its own hints that came back recently: round trip and age, in milliseconds. */
  readonly heard: { readonly lag: number; readonly ago: number } | null
}

/** Connection to a store that several servers share (contract §12). */
export interface Shared {
  /** Location of the store for people, without a password. */
  readonly address: string
  /** Why the last call could not reach the store; null if it did. */
  readonly fault: string | null
  /** Load of each pool, by its purpose. */
  load(): Readonly<Record<string, PoolLoad>>
  hearing(): Hearing
  /** All servers that have joined and not left, by name. Rejects with `unavailable`. */
  servers(): Promise<ServerSeen[]>
  /**
   * Registers how this server is reached: `address` for people, `endpoint` for the other servers, null while
   * it serves none. Each renewal of the lease registers it again.
   */
  listensAt(address: string, endpoint: string | null): Promise<void>
  /** Living servers with an endpoint, including this one. Rejects with `unavailable`. */
  peers(): Promise<Peer[]>
  /**
   * Epochs of other servers that were alive a moment ago; `changed` returns the function that unsubscribes.
   */
  readonly neighbours: { others(): ReadonlySet<number>; changed(listener: () => void): () => void }
}

/** Starts of servers on one store. Agents remember the store's progress, so they notice an older one. */
export interface Runs {
  readonly id: string
  readonly startedAt: string
  /** Newest sequence of this start that is known to be durable. */
  readonly sequence: number
  /**
   * How far the store has come, including every write acknowledged before the call, so that an ordinary crash
   * loses none of it. Null while this start cannot be recorded: agents must not remember a mark that the
   * store would not know.
   */
  mark(): RunMark | null | Promise<RunMark | null>
  /** Like `mark`, at most a second old. */
  recent(): RunMark | null
  /** Whether the store contains the state of a mark. */
  knows(mark: RunMark): boolean | Promise<boolean>
}

export interface Cluster {
  /** Null if this server has the store to itself. */
  shared: Shared | null
  ownership: Ownership
  links: Links
  /** Runs `work` unless another server of the store is running such work; false in that case. */
  tryExclusive(work: () => Promise<void>): Promise<boolean>
  /** Runs `work` once no other server of the store is running such work. */
  exclusive<T>(work: () => Promise<T>): Promise<T>
}
