/** One start of a server. */
export interface RunRecord {
  id: string
  startedAt: string
  /** The number of the last commit before it, and of its own last one; null while it runs. */
  first: number
  last: number | null
  /** That the store is a backup which was brought back, as this run found out. */
  restore?: RestoreNote
}

export interface RestoreNote {
  noticedAt: string
  /** A sentence that says what proved it. */
  reason: string
  /** Whose agent proved it; null where `rsm server restore` says it. */
  hostId: number | null
  agentId: string | null
  /** What is held until it is confirmed: tasks that were there at the start. */
  taskIds: string[]
  /** Runs that this store does not know, or not to their ends: once confirmed they prove nothing more. */
  strangers: string[]
  confirmedAt: string | null
}

/** The key that the store was used with, by the name of its file. */
export interface KeyRecord {
  id: 'seal.key' | 'signing.key'
  /** A digest of the key: it tells keys apart and reveals nothing about them. */
  keyId: string
  notedAt: string
}
