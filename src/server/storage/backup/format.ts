import { createHash } from 'node:crypto'
import { RsmError } from '../../../core/errors.ts'
import { nouns } from '../records/records.ts'
import { type Items, type Kind, kinds, newline } from '../streams.ts'

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
const sumsName = (number: number): string => `sums/${String(number).padStart(6, '0')}`
export const isSums = (name: string): boolean => /^sums\/\d{6}$/.test(name)
export const partName = (kind: Kind, number: number): string => `${kind}/${String(number).padStart(6, '0')}`
const partPattern = new RegExp(`^(?:${keysName}|${clockName}|(?:${backupKinds.join('|')})/\\d{6,9})$`)
export const isPartName = (name: string): boolean => partPattern.test(name)
export const maxDamaged = 100
/** Maximum bytes of an entry, because each is read as a whole. */
export const longestPart = 256 * 1024 * 1024

export const knownNouns: readonly string[] = nouns

export class Sums {
  #text = ''
  #segments = 0
  readonly #all = createHash('sha256')
  #files = 0
  #bytes = 0
  /** Entries since the last checksum entry. */
  pending = 0

  add(name: string, bytes: Uint8Array): void {
    this.#text += `${createHash('sha256').update(bytes).digest('hex')}  ${name}\n`
    this.#files++
    this.#bytes += bytes.length
    this.pending++
  }

  /** Name and text of the next checksum entry. */
  next(): [name: string, text: string] {
    const text = this.#text
    this.#all.update(text)
    this.#text = ''
    this.pending = 0
    return [sumsName(++this.#segments), text]
  }

  end(): Omit<BackupEnd, 'damaged'> {
    return { files: this.#files, bytes: this.#bytes, sums: this.#all.digest('hex') }
  }
}

/** Approximate bytes of one entry of the tar. */
const partBytes = 1024 * 1024

type Parsed = Readonly<Record<string, unknown>>

/** Ids of tasks, sessions and files, which become file names. */
const isName = (value: unknown): boolean => typeof value === 'string' && /^[\w-]{1,64}$/.test(value)
const isNumber = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0
const isDigest = (value: unknown): boolean => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)

/** Fields that become parts of paths, and the checks that they stay in their directory. */
const pathFields: Partial<Record<Kind, Readonly<Record<string, (value: unknown) => boolean>>>> = {
  results: { taskId: isName },
  versions: { id: isNumber, version: isNumber },
  output: { id: isName },
  recordings: { id: isName },
  files: { id: isName, content: (value) => value === null || isDigest(value) },
}

/** Kinds whose items are followed by bytes. */
const blobKinds: ReadonlySet<Kind> = new Set(['output', 'recordings', 'files'])

/** Errors: `invalid` for an item that would leave its directory or whose bytes cannot be counted. */
function checkItem(kind: Kind, item: Parsed): void {
  for (const [field, isSafe] of Object.entries(pathFields[kind] ?? {})) {
    const value = item[field]
    if (!isSafe(value))
      throw new RsmError(
        'invalid',
        `the backup holds ${JSON.stringify(value)}, which is not an id of a server`,
      )
  }
  if (blobKinds.has(kind) && !(Number.isSafeInteger(item.bytes) && Number(item.bytes) >= 0))
    throw new RsmError('invalid', `the backup is damaged: an item of ${kind} has no size`)
}

const bytesIn = (item: object): number => ('bytes' in item && typeof item.bytes === 'number' ? item.bytes : 0)

/** Encodes items as lines of JSON, a blob's bytes after its line. Errors: `unavailable` for a short blob. */
async function* encoded<K extends Kind>(kind: K, items: AsyncIterable<Items[K]>): AsyncGenerator<Uint8Array> {
  let left = 0
  const end = () => {
    if (left === 0 || kind === 'audit') return
    throw new RsmError('unavailable', `${kind} of the store changed size during the backup`, {
      hint: 'make the backup again; if that fails too, run `rsm server doctor`',
    })
  }
  for await (const item of items)
    if (item instanceof Uint8Array) {
      left -= item.length
      yield item
    } else {
      end()
      left = bytesIn(item)
      yield Buffer.from(`${JSON.stringify(item)}\n`)
    }
  end()
}

/** Like `encoded`, in pieces of about equal size. */
export async function* encodedParts<K extends Kind>(
  kind: K,
  items: AsyncIterable<Items[K]>,
): AsyncGenerator<Buffer> {
  let pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of encoded(kind, items)) {
    pieces.push(piece)
    length += piece.length
    if (length < partBytes) continue
    yield Buffer.concat(pieces)
    pieces = []
    length = 0
  }
  if (length > 0) yield Buffer.concat(pieces)
}

/** Decodes items. Errors: `invalid` if the stream is cut off, or a name leads out of its directory. */
export async function* decoded<K extends Kind>(
  kind: K,
  parts: AsyncIterable<Uint8Array>,
): AsyncGenerator<Items[K]> {
  let left = 0
  let begun: Uint8Array[] = []
  let begunBytes = 0
  const isBytes = kind === 'audit'
  for await (const part of parts)
    for (let at = 0; at < part.length; ) {
      if (isBytes || left > 0) {
        const piece = isBytes ? part : part.subarray(at, at + left)
        yield piece as Items[K]
        left -= piece.length
        at += piece.length
        continue
      }
      const end = part.indexOf(newline, at)
      const piece = part.subarray(at, end < 0 ? part.length : end)
      begun.push(piece)
      begunBytes += piece.length
      if (begunBytes > longestPart)
        throw new RsmError('invalid', `the backup is damaged: an item of ${kind} is too long`)
      at = end < 0 ? part.length : end + 1
      if (end < 0) continue
      const item = JSON.parse(Buffer.concat(begun).toString('utf8')) as Exclude<Items[K], Uint8Array>
      begun = []
      begunBytes = 0
      checkItem(kind, item as unknown as Parsed)
      left = bytesIn(item)
      yield item
    }
  if ((left > 0 && !isBytes) || begun.length > 0)
    throw new RsmError('invalid', `the backup is damaged: ${kind} is incomplete`)
}
