/** Version of a backup as a file; a newer one is refused. What is in it has versions of its own. */
export const backupFormat = 1

/** What a backup begins with: the tar entry `rsm-backup.json`. */
export interface BackupHeader {
  readonly format: number
  /** Of the rsm that made it. */
  readonly version: string
  readonly createdAt: string
  readonly storeId: string
  /** Of the store's files. */
  readonly storeFormat: number
  /** The last transaction in it. */
  readonly sequence: number
  readonly hasOutput: boolean
  readonly hasKeys: boolean
}

/** What it ends with: the tar entry `end.json`. A file without it is cut off. */
export interface BackupEnd {
  /** Files and their bytes, without header, sums and this. */
  readonly files: number
  readonly bytes: number
  /** SHA-256, hex, of all sums. */
  readonly sums: string
  /** What was not whole on disk when it was made, and is in here as it was found; the first 100. */
  readonly damaged: readonly string[]
}

export const headerName = 'rsm-backup.json'
export const endName = 'end.json'
export const keysName = 'keys.sealed'
/** After each so many files, at most, comes an entry with their sums, as sha256sum(1) writes them. */
export const filesPerSums = 1000
export const sumsName = (number: number): string => `sums/${String(number).padStart(6, '0')}`
export const isSums = (name: string): boolean => /^sums\/\d{6}$/.test(name)
export const mostDamaged = 100
/** Bytes of what is read as a whole: header, sums, end, keys. */
export const longestSmall = 4 * 1024 * 1024

const names: readonly RegExp[] = [
  /^store\/store\.json$/,
  /^store\/(?:snapshot|journal)-\d{12,15}\.jsonl$/,
  /^scripts\/[1-9]\d{0,15}\/[1-9]\d{0,15}\.json$/,
  /^audit\/audit\.log$/,
  /^audit\.head$/,
  /^clock\.json$/,
  /^used$/,
  /^tasks\/[\w-]{1,64}\/(?:output\.log|task\.json)$/,
  /^terminals\/[\w-]{1,64}\.cast(?:\.sums)?$/,
  /^files\/[\w-]{1,64}$/,
  /^keys\.sealed$/,
]

/** Whether a backup may hold a file of this name: none leads out of the data directory. */
export const isPartName = (name: string): boolean => names.some((pattern) => pattern.test(name))
