import type { Change } from '../../../core/protocol/http/events.ts'

/** Changes by topic: ids only, so that listeners read the record again. */
export interface HintTopics {
  /** The task changed, or its part on one host. */
  task: { id: string; hostId: number | null; change: Change }
  /** Output of this task was written and is readable. */
  output: { id: string }
  host: { id: number; change: Change }
  /** A cluster's record changed; members that join or leave by its selector publish no hint. */
  cluster: { id: number; change: Change }
  /** A host has executions to take or to cancel. Servers of other versions know the topic by this name. */
  lane: { id: number }
  /** Another server may have a newer claim, of this epoch, to the link of a host. */
  link: { id: number; epoch: number }
  /** A server of the store joined, left or lapsed: its tasks may be free and its links gone. */
  server: { id: string }
  /** A token ended (logout, revocation, new password or role): its streams and terminals must close (contract §2). */
  tokenEnded: { id: number }
  /** An agent's token was revoked, or its host deleted. */
  agentRevoked: { id: string }
}

/**
 * Change notices for every server of one store. A hint follows once its change is durable; it may be lost or
 * arrive twice, so only latency may depend on it.
 */
export interface Hints {
  publish<T extends keyof HintTopics>(topic: T, hint: HintTopics[T]): void
  /**
   * Listens to the hints of one id, or of all if null; effective at once. Returns the function that
   * unsubscribes. Listeners must not throw or block: they note the change and return later.
   */
  subscribe<T extends keyof HintTopics>(
    topic: T,
    id: HintTopics[T]['id'] | null,
    listener: (hint: HintTopics[T]) => void,
  ): () => void
  /**
   * Reports that hints of other servers may have been lost, so that caches kept by hints must be read again.
   * Returns the function that unsubscribes.
   */
  missed(listener: () => void): () => void
}
