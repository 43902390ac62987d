import type { Readable } from 'node:stream'
import type { Compacted } from '../../../core/protocol/control.ts'

export interface BackupOptions {
  /** Whether to include output of tasks and recordings of terminal sessions. */
  readonly withOutput: boolean
  /** Seals the server's keys into the backup; without one they are left out. */
  readonly passphrase?: string | undefined
}

export interface BackupMade {
  readonly sequence: number
  readonly files: number
  /** Size of the files, uncompressed. */
  readonly bytes: number
  /** Findings of damage; each says whether the backup has the data as found or omits it. */
  readonly damaged: readonly string[]
}

/** Backup in progress: a gzipped tar. */
export interface Backup {
  /** Destroying it aborts the backup. */
  readonly stream: Readable
  /** Rejects if the backup was aborted. */
  readonly made: Promise<BackupMade>
}

export interface StoreMaintenance {
  /**
   * Backs up the store as of one transaction, with the files that belong to it. Writes continue meanwhile;
   * none of those files may be removed until `made` settles.
   */
  backup(options: BackupOptions): Promise<Backup>
  /** Rewrites the store's snapshot; returns its bytes on disk before and after. */
  compact(): Promise<Compacted>
}
