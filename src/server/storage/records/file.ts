import type { Sealed } from '../ports/keys.ts'

/**
 * File on its way to hosts, or from one (contract §13); the port `Files` has its bytes, under the same id.
 */
export interface FileRecord {
  id: string
  /** Uploader, or the owner of the task that fetched it. */
  userId: number
  /** Name at its source. Absent in records of older servers. */
  name?: string | null
  /** Bytes; null until known. */
  size: number | null
  /** Expected or computed digest; null until known. */
  sha256: string | null
  isComplete: boolean
  /** Key that its bytes are sealed with, itself sealed; null if the file is not secret. */
  sealedKey: Sealed | null
  createdAt: string
  /** Kept until then, even if no task needs it. */
  expiresAt: string
  /** Task that fetched it and is removed together with it; null for an upload. */
  taskId: string | null
}
