import type { Sealed } from '../ports/keys.ts'

/** A file on its way to hosts, or from one (contract §13); its bytes are behind the port `Files`, under the same id. */
export interface FileRecord {
  id: string
  /** Whose upload it is, or whose task has fetched it. */
  userId: number
  /** What it is called where it comes from. Absent in records of older servers. */
  name?: string | null
  /** In bytes; null until it is known. */
  size: number | null
  /** What it has to be, or what it is; null until it is known. */
  sha256: string | null
  isComplete: boolean
  /** The key that its bytes are sealed with, itself sealed; null where the file is not secret. */
  sealedKey: Sealed | null
  createdAt: string
  /** Until then it is kept whether a task needs it or not. */
  expiresAt: string
  /** The task that has fetched it, and with which it goes; null of an upload. */
  taskId: string | null
}
