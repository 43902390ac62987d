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
  /** Tells the others how this one is reached. */
  listensAt(address: string): void
}
