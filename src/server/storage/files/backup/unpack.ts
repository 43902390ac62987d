import { createHash } from 'node:crypto'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { type Entry, extract } from 'tar-stream'
import { RsmError } from '../../../../core/errors.ts'
import { formatVersion } from '../store/files.ts'
import {
  type BackupEnd,
  type BackupHeader,
  backupFormat,
  endName,
  filesPerSums,
  headerName,
  isPartName,
  isSums,
  longestSmall,
  sumsName,
} from './format.ts'

/** Who reads a backup gets its files in their order. */
export interface Unpacking {
  /** Before any file. Throws where the backup is not what is wanted. */
  header(header: BackupHeader): Promise<void> | void
  /** Takes all bytes of a file. */
  file(name: string, bytes: AsyncIterable<Buffer>, size: number): Promise<void>
}

export interface Unpacked {
  readonly header: BackupHeader
  readonly end: BackupEnd
}

const again = 'nothing was changed; take another backup, or copy this one again from where it came'

function broken(problem: string, cause?: unknown): RsmError {
  return new RsmError('invalid', `the backup ${problem}`, { hint: again, cause })
}

/** What gzip and tar say of bytes that are not what was written. */
function explain(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof RsmError) return error
  const code = 'code' in error ? String(error.code) : ''
  if (code === 'Z_BUF_ERROR' || /unexpected end/i.test(error.message)) return broken('is cut off', error)
  if (code.startsWith('Z_') || /tar/i.test(error.message)) return broken('is damaged', error)
  return error
}

async function small(entry: Entry): Promise<string> {
  const chunks: Buffer[] = []
  if ((entry.header.size ?? 0) > longestSmall) throw broken(`is damaged: ${entry.header.name} is too long`)
  for await (const chunk of entry) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

function parse(name: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw broken(`is damaged: ${name} is not JSON`, cause)
  }
}

function newer(header: BackupHeader, what: string): RsmError {
  return new RsmError('unavailable', `the backup was made by a newer rsm (${header.version}: ${what})`, {
    hint: 'nothing was changed; restore it with that rsm',
  })
}

function checkHeader(header: BackupHeader): BackupHeader {
  if (!Number.isSafeInteger(header.format) || typeof header.storeId !== 'string')
    throw broken(`is damaged: ${headerName} does not say what it is`)
  if (header.format > backupFormat)
    throw newer(header, `backup format ${header.format}; this one reads up to ${backupFormat}`)
  if (header.storeFormat > formatVersion)
    throw newer(header, `store format ${header.storeFormat}; this one reads up to ${formatVersion}`)
  return header
}

/** The sums of files as they come, held against those that the backup says. */
class Sums {
  #text = ''
  #inText = 0
  #segments = 0
  readonly #all = createHash('sha256')
  files = 0
  bytes = 0

  add(name: string, size: number, hash: string): void {
    this.#text += `${hash}  ${name}\n`
    this.files++
    this.bytes += size
    if (++this.#inText > filesPerSums) throw broken('is damaged: it lacks sums')
  }

  compare(name: string, said: string): void {
    if (name !== sumsName(++this.#segments)) throw broken(`is damaged: ${name} is out of its place`)
    if (said !== this.#text) {
      const lines = new Set(said.split('\n'))
      const wrong = this.#text.split('\n').find((line) => !lines.has(line))
      throw broken(`is damaged: ${wrong?.slice(66) ?? name} is not what was written`)
    }
    this.#all.update(said)
    this.#text = ''
    this.#inText = 0
  }

  end(end: BackupEnd): void {
    const fits = end.files === this.files && end.bytes === this.bytes && this.#text === ''
    if (!fits || end.sums !== this.#all.digest('hex')) throw broken('is damaged: its end does not fit')
  }
}

async function* hashed(entry: Entry, done: (hash: string) => void): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  for await (const chunk of entry) {
    hash.update(chunk)
    yield chunk
  }
  done(hash.digest('hex'))
}

/**
 * Reads a backup from its first byte to its last, in bounded memory, and checks all of it.
 * @throws RsmError `invalid` for one that is cut off or altered, `unavailable` for one of a newer rsm
 */
export async function unpackBackup(
  source: AsyncIterable<Uint8Array>,
  unpacking: Unpacking,
): Promise<Unpacked> {
  const entries = extract()
  let failure: unknown
  pipeline(source, createGunzip(), entries, (error) => {
    failure = error
  })
  const sums = new Sums()
  let header: BackupHeader | null = null
  let end: BackupEnd | null = null
  try {
    for await (const entry of entries) {
      const { name, type, size = 0 } = entry.header
      if (type !== 'file') throw broken(`holds ${name}, which is not a file (${type})`)
      if (end !== null) throw broken(`is damaged: ${name} follows its end`)
      if (header === null) {
        if (name !== headerName) throw broken(`is not a backup of rsm: it begins with ${name}`)
        header = checkHeader(parse(name, await small(entry)) as BackupHeader)
        await unpacking.header(header)
      } else if (name === endName) {
        end = parse(name, await small(entry)) as BackupEnd
        sums.end(end)
      } else if (isSums(name)) {
        sums.compare(name, await small(entry))
      } else {
        if (!isPartName(name)) throw broken(`holds ${JSON.stringify(name)}, which is not a file of a server`)
        let hash = ''
        const bytes = hashed(entry, (found) => {
          hash = found
        })
        await unpacking.file(name, bytes, size)
        sums.add(name, size, hash)
      }
    }
  } catch (error) {
    throw explain(failure ?? error)
  }
  if (failure) throw explain(failure)
  if (header === null) throw broken('is empty, or none of rsm')
  if (end === null) throw broken('is cut off')
  return { header, end }
}
