import { nouns } from '../records/records.ts'
import { type Kind, kinds } from '../streams.ts'

/** Format version of backup files. 1: files of a data directory, up to 0.1.0. */
export const backupFormat = 2

export type StoreKind = 'directory' | 'postgresql'

/** First entry of the tar, `rsm-backup.json`. */
export interface BackupHeader {
  readonly format: number
  readonly version: string
  readonly createdAt: string
  readonly storeId: string
  readonly store: StoreKind
  readonly nouns: readonly string[]
  /** Sequence of its last transaction. */
  readonly sequence: number
  readonly hasOutput: boolean
  readonly hasKeys: boolean
}

/** Last entry of the tar, `end.json`; a file without it is cut off. */
export interface BackupEnd {
  /** Number of entries and their bytes, without checksum entries and this one. */
  readonly files: number
  readonly bytes: number
  /** SHA-256 of all checksum entries, hex. */
  readonly sums: string
  /** The first 100 findings of damage; each says whether the backup has the data as found or omits it. */
  readonly damaged: readonly string[]
}

export const headerName = 'rsm-backup.json'
export const endName = 'end.json'
export const keysName = 'keys.sealed'
/** History of the server's clock, as in its data directory. */
export const clockName = 'clock.json'

/** Kinds of a store that backups omit. */
const leftOut = ['heads', 'presence', 'metrics'] as const satisfies readonly Kind[]
export type BackupKind = Exclude<Kind, (typeof leftOut)[number]>
export const backupKinds = kinds.filter((kind): kind is BackupKind => !leftOut.some((one) => one === kind))
export const outputKinds: readonly Kind[] = ['output', 'recordings', 'files']

/** Maximum number of entries between two checksum entries, which have the format of sha256sum(1). */
export const filesPerSums = 1000
export const sumsName = (number: number): string => `sums/${String(number).padStart(6, '0')}`
export const isSums = (name: string): boolean => /^sums\/\d{6}$/.test(name)
export const partName = (kind: Kind, number: number): string => `${kind}/${String(number).padStart(6, '0')}`
const partPattern = new RegExp(`^(?:${keysName}|${clockName}|(?:${backupKinds.join('|')})/\\d{6,9})$`)
export const isPartName = (name: string): boolean => partPattern.test(name)
export const maxDamaged = 100
/** Maximum bytes of an entry, because each is read as a whole. */
export const longestPart = 256 * 1024 * 1024

export const knownNouns: readonly string[] = nouns
