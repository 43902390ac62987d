/** One start of a server. */
export interface RunRecord {
  id: string
  startedAt: string
  /** Sequence of the last commit before it, and of its own last one; null while it runs. */
  first: number
  last: number | null
  /** Present if this run found the store to be a restored backup. */
  restore?: RestoreNote
}

export interface RestoreNote {
  noticedAt: string
  /** Sentence that names the evidence. */
  reason: string
  /** Host whose agent proved it; null if `rsm server restore` reported it. */
  hostId: number | null
  agentId: string | null
  /** Tasks that existed at the start, held until the restore is confirmed. */
  taskIds: string[]
  /**
   * Runs that this store does not know, or not to their ends; once confirmed, they are no longer evidence.
   */
  strangers: string[]
  confirmedAt: string | null
}

/** Key that the store was used with, by the name of its file. */
export interface KeyRecord {
  id: 'seal.key' | 'signing.key'
  /** Digest of the key: identifies it without revealing it. */
  keyId: string
  notedAt: string
}
