import type { Change } from '../../../core/protocol/http/events.ts'

/** What changed, by topic: ids only, so that whoever hears of it reads it anew. */
export interface HintTopics {
  /** The task changed, or what it has of one host. */
  task: { id: string; hostId: number | null; change: Change }
  /** Output of this task was written and can be read. */
  output: { id: string }
  host: { id: number; change: Change }
  /** A cluster's record changed; members that come and go by its selector give no hint. */
  cluster: { id: number; change: Change }
  /** A host has executions to take, or to cancel: for the server with its link. Servers of other versions know the topic by this name. */
  lane: { id: number }
  /** Another server may have a newer claim to the link of a host, of this epoch. */
  link: { id: number; epoch: number }
  /** A server of the store has joined, left or lapsed: tasks may be free, links gone. */
  server: { id: string }
  /** A token ended (logout, revocation, a changed password or role): what hangs on it has to close (contract §2). */
  tokenEnded: { id: number }
  /** An agent's token was revoked, or its host deleted. */
  agentRevoked: { id: string }
}

/**
 * Where to look, for every server of one store. A hint comes after what it tells of is durable; it may be lost or come
 * twice, so nothing may depend on it but how soon something is seen.
 */
export interface Hints {
  publish<T extends keyof HintTopics>(topic: T, hint: HintTopics[T]): void
  /**
   * Hears the hints of one id; null: of all. In force at once. Answers the way to unsubscribe. Listeners must not throw or
   * block: they note the change and come back later.
   */
  subscribe<T extends keyof HintTopics>(
    topic: T,
    id: HintTopics[T]['id'] | null,
    listener: (hint: HintTopics[T]) => void,
  ): () => void
  /**
   * Hears that hints of other servers may have been lost: whatever is kept by them has to be read anew. Answers the way to
   * unsubscribe.
   */
  missed(listener: () => void): () => void
}
