import { type Kind, kinds } from '../migrate/kinds.ts'
import { nouns } from '../records/records.ts'

/** Version of a backup as a file. 1: files of a data directory, to 0.1.0. */
export const backupFormat = 2

export type StoreKind = 'directory' | 'postgresql'

/** The first entry of the tar, `rsm-backup.json`. */
export interface BackupHeader {
  readonly format: number
  /** The rsm that made it. */
  readonly version: string
  readonly createdAt: string
  readonly storeId: string
  /** Where the store was. */
  readonly store: StoreKind
  /** Kinds of records that it may hold. */
  readonly nouns: readonly string[]
  /** The last transaction in it. */
  readonly sequence: number
  readonly hasOutput: boolean
  readonly hasKeys: boolean
}

/** The last entry of the tar, `end.json`. A file without it is cut off. */
export interface BackupEnd {
  /** Entries and their bytes, without sums and this one. */
  readonly files: number
  readonly bytes: number
  /** SHA-256 of all sums, hex. */
  readonly sums: string
  /** The first 100 findings of damage; each says whether the backup has the data as it was found or is without it. */
  readonly damaged: readonly string[]
}

export const headerName = 'rsm-backup.json'
export const endName = 'end.json'
export const keysName = 'keys.sealed'
/** What the server's clock has shown, as in its data directory. */
export const clockName = 'clock.json'

/** Kinds of a store that are in a backup; those that are left out begin empty. */
const leftOut = ['heads', 'presence', 'metrics'] as const satisfies readonly Kind[]
export type BackupKind = Exclude<Kind, (typeof leftOut)[number]>
export const backupKinds = kinds.filter((kind): kind is BackupKind => !leftOut.some((one) => one === kind))
export const outputKinds: readonly Kind[] = ['output', 'recordings', 'files']

/** Entries between two sums entries, at most; these are as sha256sum(1) writes them. */
export const filesPerSums = 1000
export const sumsName = (number: number): string => `sums/${String(number).padStart(6, '0')}`
export const isSums = (name: string): boolean => /^sums\/\d{6}$/.test(name)
export const partName = (kind: Kind, number: number): string => `${kind}/${String(number).padStart(6, '0')}`
const partPattern = new RegExp(`^(?:${keysName}|${clockName}|(?:${backupKinds.join('|')})/\\d{6,9})$`)
export const isPartName = (name: string): boolean => partPattern.test(name)
export const maxDamaged = 100
/** Bytes of an entry, at most: each is read as a whole. */
export const longestPart = 256 * 1024 * 1024

export const knownNouns: readonly string[] = nouns
