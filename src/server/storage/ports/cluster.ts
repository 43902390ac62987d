import type { RunMark } from '../../../core/protocol/messages.ts'
import type { TerminalRecord } from '../records/terminal.ts'
import type {
  Attachment,
  AttachOptions,
  NewTerminal,
  TerminalClient,
  TerminalView,
} from './terminal-client.ts'

/** Milliseconds for which a member counts as living after it has joined or renewed, by a monotonic clock. */
export const lease = 10_000
/** Milliseconds between renewals: two may fail before the lease is over. */
export const renewEvery = 3_000

/** One life of a server: joining under the same name again begins another one, with a higher epoch. */
export interface Member {
  readonly name: string
  readonly epoch: number
}

/**
 * Owners of running tasks: the owner carries out the task's plan. A webhook, as `webhook/ID`, is owned like a task. The lease decides only when
 * another server may take a task over. Safety rests on `holds`, which knows no clock.
 */
export interface Ownership {
  /** Fences the former life of this name: that one owns nothing any more. */
  join(name: string): Promise<Member>
  /**
   * False when the member is fenced or has left: it must stop, or join anew. A lapsed one renews and keeps what nobody took.
   * Errors: `conflict` where a newer rsm has changed the store, so that this one must stop.
   */
  renew(member: Member): Promise<boolean>
  /**
   * When the running lease of a member was asked for, in monotonic milliseconds; null for one that is fenced, has left, or
   * lives in another process.
   */
  renewedAt(member: Member): number | null
  /** Hands over: all its tasks are free at once. */
  leave(member: Member): Promise<void>
  /** Takes those of the tasks that no living member owns; answers all of them that the member owns now. */
  claim(member: Member, taskIds: readonly string[]): Promise<string[]>
  /** Forgets tasks that have ended, or gives them away; those of others stay theirs. */
  release(member: Member, taskIds: readonly string[]): Promise<void>
  /** Null: nobody that lives. */
  owner(taskId: string): Promise<Member | null>
  /** Whether a step of this member on the task still counts: false for a life that is fenced, or whose task another one took. */
  holds(member: Member, taskId: string): Promise<boolean>
}

/** A hold on the link of a host. Its epoch fences what is written for that link. */
export interface LinkClaim {
  readonly hostId: number
  readonly agentId: string
  /** The server that has the socket. */
  readonly server: Member
  /** Rises over all claims: of two claims the higher is the newer. */
  readonly epoch: number
  /** ISO 8601. */
  readonly since: string
}

/** What a claim has brought. */
export interface Claimed {
  readonly claim: LinkClaim
  /** This replacement showed that two agents have one identity: from now on new claims are refused. */
  readonly isDuplicate: boolean
}

/** Which server holds the link of which host. The newest claim holds it (contract §6, P12). */
export interface Links {
  /**
   * Null: refused, as two agents share the host's identity (P13). Else `superseded` is called once a newer claim holds the
   * host, which may be late: a server that writes for a link checks its claim in the same step.
   */
  claim(
    hostId: number,
    by: { server: Member; agentId: string },
    superseded: () => void,
  ): Promise<Claimed | null>
  /** The host can be sent something over this link: an agent of ours has said HELLO. Nothing happens to a newer claim. */
  ready(claim: LinkClaim): Promise<void>
  /** The link is gone; nothing happens to a newer claim. */
  release(claim: LinkClaim): Promise<void>
  /** Null when no link stands at a server that lives. */
  holder(hostId: number): Promise<LinkClaim | null>
  /** Of links that are ready; the other hosts are left out. */
  holders(hostIds: readonly number[]): Promise<Map<number, LinkClaim>>
  /**
   * Whether new claims of the host are refused, as far as this server knows at once; `claim` decides. Three replacements within
   * a minute are two agents with one identity: for five minutes the one that holds the link keeps it (P13, reliability F12).
   */
  refuses(hostId: number): boolean
  /** Called every few seconds: ends refusals whose time is over, and answers their hosts, each to one server only. */
  expire(): Promise<number[]>
}

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
 * not acknowledged (P43) and by `pause`. When the way is lost, the client is closed and the attachment is told `gone`;
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

/** A server of a store, as all servers see it. */
export interface ServerSeen {
  readonly name: string
  readonly version: string
  /** ISO 8601: when it joined. */
  readonly startedAt: string
  /** How it is reached, as it says itself; null before it listens. */
  readonly address: string | null
  /** ISO 8601: until then nobody takes over what it owns. In the past, it counts as gone. */
  readonly leaseUntil: string
  readonly isLiving: boolean
  /** Links of agents that it holds. */
  readonly links: number
  /** Running tasks that it owns. */
  readonly tasks: number
}

/** A living server, as other servers reach it. */
export interface Peer extends Member {
  /** Sealed with the key of all servers (S04): who writes to the database leads no server astray. */
  readonly endpoint: string
}

/** Connections of a pool, at most and in use, and calls that wait for one. */
export interface PoolLoad {
  readonly size: number
  readonly busy: number
  readonly waiting: number
}

/** How this server hears hints. */
export interface Hearing {
  /** Whether the connection stands on which it listens. */
  readonly isListening: boolean
  /** The last of its own hints that came back lately: how many milliseconds that took, and how many ago it was. */
  readonly heard: { readonly lag: number; readonly ago: number } | null
}

/** What stands between a server and a store that several servers share (contract §12). */
export interface Shared {
  /** For people: where the store is, without a password. */
  readonly address: string
  /** Why the last call could not reach the store; null where it could. */
  readonly fault: string | null
  /** By what the connections are for. */
  load(): Readonly<Record<string, PoolLoad>>
  hearing(): Hearing
  /** All servers that have joined and not left, in the order of their names. Rejects with `unavailable`. */
  servers(): Promise<ServerSeen[]>
  /**
   * Registers how this one is reached: `address` for people, `endpoint` for the other servers, null while it serves none.
   * Registered again with each renewal of the lease.
   */
  listensAt(address: string, endpoint: string | null): Promise<void>
  /** Living servers with an endpoint, this one among them. Rejects with `unavailable`. */
  peers(): Promise<Peer[]>
  /** Epochs of the other servers that lived a moment ago; `changed` answers the way to unsubscribe. */
  readonly neighbours: { others(): ReadonlySet<number>; changed(listener: () => void): () => void }
}

/** The starts of servers on one store: agents remember how far it had come, and so notice when it is older than that. */
export interface Runs {
  /** This one. */
  readonly id: string
  readonly startedAt: string
  /** The newest sequence of this start that this server knows to be durable. */
  readonly sequence: number
  /**
   * How far the store has come, with all that was acknowledged before the call: an ordinary crash takes nothing of it back.
   * Null while this start can't be noted: no agent may remember what the store would not know.
   */
  mark(): RunMark | null | Promise<RunMark | null>
  /** The same as it was a second ago at most. */
  recent(): RunMark | null
  /** Whether the store has what a mark speaks of. */
  knows(mark: RunMark): boolean | Promise<boolean>
}

/** How a server stands among the servers of its store. */
export interface Cluster {
  /** Null if this server has the store to itself. */
  shared: Shared | null
  ownership: Ownership
  links: Links
  /** Runs `work` unless another server of the store is running such work; then answers false. */
  tryExclusive(work: () => Promise<void>): Promise<boolean>
  /** Runs `work` once no other server of the store is running such work. */
  exclusive<T>(work: () => Promise<T>): Promise<T>
}
