import type { Readable } from 'node:stream'
import type { Compacted } from '../../../core/protocol/control.ts'

export interface BackupOptions {
  /** Whether output of tasks and recordings of terminal sessions are in it. */
  readonly withOutput: boolean
  /** Seals the server's keys into it; without one they are left out. */
  readonly passphrase?: string | undefined
}

/** What a finished backup holds. */
export interface BackupMade {
  readonly sequence: number
  readonly files: number
  /** Of the files, uncompressed. */
  readonly bytes: number
  /** What was not whole on disk and is in it as it was found. */
  readonly damaged: readonly string[]
}

/** A backup that is being made: a tar that gzip has compressed. */
export interface Backup {
  /** Destroying it ends the work. */
  readonly stream: Readable
  /** Rejects where it broke off. */
  readonly made: Promise<BackupMade>
}

/** What keeps the data of a server beyond its daily work. */
export interface StoreMaintenance {
  /** The store at one transaction, with what belongs to it. Writes go on meanwhile; nothing of it may be removed until `made` settles. */
  backup(options: BackupOptions): Promise<Backup>
  /** Writes the store's snapshot anew; answers its bytes on disk before and after. */
  compact(): Promise<Compacted>
}
