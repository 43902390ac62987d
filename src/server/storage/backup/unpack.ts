import { rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { type Entry, extract } from 'tar-stream'
import { RsmError } from '../../../core/errors.ts'
import {
  isDiskFull,
  isMissing,
  removeOnSignal,
  removeStale,
  replaceDurably,
  temporaryName,
} from '../../../disk/durable.ts'
import { whyUnwritable } from '../../../disk/named-files.ts'
import {
  type BackupEnd,
  type BackupHeader,
  backupFormat,
  endName,
  filesPerSums,
  headerName,
  isPartName,
  isSums,
  knownNouns,
  longestPart,
  Sums,
} from './format.ts'
import type { Part } from './pack.ts'

/** Bytes per chunk of gunzip: its default of 16 KiB costs an event each. */
const gunzipBytes = 128 * 1024

export interface Unpacked {
  readonly header: BackupHeader
  readonly end: BackupEnd
}

const again = 'nothing was changed; use another backup, or copy this one again'

export function broken(problem: string, cause?: unknown): RsmError {
  return new RsmError('invalid', `the backup ${problem}`, { hint: again, cause })
}

function explain(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof RsmError) return error
  const code = 'code' in error ? String(error.code) : ''
  if (code === 'Z_BUF_ERROR' || /unexpected end/i.test(error.message)) return broken('is cut off', error)
  if (code.startsWith('Z_') || /tar/i.test(error.message)) return broken('is damaged', error)
  return error
}

function parse(name: string, bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (cause) {
    throw broken(`is damaged: ${name} is not JSON`, cause)
  }
}

const newer = ({ version }: BackupHeader, what: string) =>
  new RsmError('unavailable', `the backup was made by a newer rsm (${version}: ${what})`, {
    hint: 'nothing was changed; restore it with that rsm',
  })

function checkNouns(header: BackupHeader): void {
  const unknown = header.nouns.find((noun) => !knownNouns.includes(noun))
  if (unknown !== undefined) throw newer(header, `it has records of an unknown kind: ${unknown}`)
}

function readHeader(bytes: Buffer): BackupHeader {
  const header = parse(headerName, bytes) as BackupHeader
  const { format, version, storeId } = header
  if (!Number.isSafeInteger(format) || typeof storeId !== 'string')
    throw broken(`is damaged: ${headerName} is not a header of rsm`)
  if (format < backupFormat)
    throw new RsmError(
      'unavailable',
      `the backup was made by an older rsm (${version}: backup format ${format})`,
      {
        hint: `nothing was changed; restore it with rsm ${version}, then make a backup with this one`,
      },
    )
  if (format > backupFormat)
    throw newer(header, `backup format ${format}; this version reads up to ${backupFormat}`)
  return header
}

function compare(sums: Sums, name: string, found: string): void {
  const [expected, text] = sums.next()
  if (name !== expected) throw broken(`is damaged: ${name} is out of order`)
  if (found === text) return
  const lines = new Set(found.split('\n'))
  const wrong = text.split('\n').find((line) => !lines.has(line))
  throw broken(`is damaged: ${wrong?.slice(66) || name} does not match its checksum`)
}

async function readEntry(entry: Entry): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of entry) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** Parts of a backup from its header on, in order; all are verified by the end. */
async function* partsOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<Part, Unpacked> {
  const entries = extract()
  let failure: unknown
  pipeline(source, createGunzip({ chunkSize: gunzipBytes }), entries, (error) => {
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
      if (size > longestPart) throw broken(`is damaged: ${name} is too long`)
      const bytes = await readEntry(entry)
      if (header === null) {
        if (name !== headerName) throw broken(`is not a backup of rsm: it begins with ${name}`)
        header = readHeader(bytes)
        sums.add(name, bytes)
        yield { name, bytes }
      } else if (name === endName) {
        end = parse(name, bytes) as BackupEnd
        const found = sums.end()
        const isWhole = sums.pending === 0 && end.files === found.files && end.bytes === found.bytes
        if (!isWhole || end.sums !== found.sums) throw broken('is damaged: its end does not match')
      } else if (isSums(name)) compare(sums, name, bytes.toString('utf8'))
      else {
        if (!isPartName(name)) throw broken(`holds ${JSON.stringify(name)}, which is not a file of a server`)
        sums.add(name, bytes)
        if (sums.pending > filesPerSums) throw broken('is damaged: checksums are missing')
        yield { name, bytes }
      }
    }
  } catch (error) {
    throw explain(failure ?? error)
  }
  if (failure) throw explain(failure)
  if (header === null) throw broken('is empty, or not a backup of rsm')
  if (end === null) throw broken('is cut off')
  return { header, end }
}

/** Reads the next part of a backup, in order; null after the last one. */
export type NextPart = () => Promise<Part | null>

/**
 * Reads a backup completely, in bounded memory, and verifies all of it, even if `use` fails or leaves parts
 * unread.
 * @throws RsmError `invalid` if it is cut off or altered, `unavailable` if it has another version
 */
export async function unpackBackup<T>(
  source: AsyncIterable<Uint8Array>,
  use: (header: BackupHeader, next: NextPart) => Promise<T>,
): Promise<Unpacked & { value: T }> {
  const parts = partsOf(source)
  let unpacked: Unpacked | undefined
  const next: NextPart = async () => {
    const { done, value } = await parts.next()
    if (!done) return value
    unpacked ??= value
    return null
  }
  const first = await next()
  const header = JSON.parse(Buffer.from(first?.bytes ?? []).toString('utf8')) as BackupHeader
  const rest = async () => {
    while ((await next()) !== null);
  }
  let value: T
  try {
    checkNouns(header)
    value = await use(header, next)
  } catch (error) {
    if (error instanceof Error && 'errno' in error) {
      await parts.return(undefined as never)
      throw error
    }
    // Altered bytes may be the cause; then the checksums show it.
    await rest()
    throw error instanceof RsmError ? error : broken('is damaged', error)
  }
  await rest()
  if (!unpacked) throw broken('is cut off')
  return { ...unpacked, value }
}

/** Checks a backup while `write` gets its bytes. Errors: those of `unpackBackup`. */
export async function checkBackup(
  backup: AsyncIterable<Uint8Array>,
  write: (chunk: Uint8Array) => Promise<unknown>,
): Promise<Unpacked> {
  async function* passed(): AsyncGenerator<Uint8Array> {
    for await (const chunk of backup) {
      await write(chunk)
      yield chunk
    }
  }
  return unpackBackup(passed(), async () => undefined)
}

function unwritable(path: string, error: unknown): RsmError {
  const why = isMissing(error) ? 'there is no such directory' : whyUnwritable(error)
  // A full disk is not the fault of the user who typed the name.
  return new RsmError(isDiskFull(error) ? 'unavailable' : 'usage', `can't write ${path}: ${why}`, {
    cause: error,
  })
}

/**
 * Writes a backup to a file of mode 0600, and renames it into place once all of it is written and checked.
 */
export async function writeCheckedFile(
  path: string,
  backup: AsyncIterable<Uint8Array>,
): Promise<Unpacked & { bytes: number }> {
  await removeStale(path)
  const temporary = temporaryName(path)
  const remove = () => rmSync(temporary, { force: true })
  let file: FileHandle
  try {
    file = await open(temporary, 'wx', 0o600)
  } catch (error) {
    throw unwritable(path, error)
  }
  const stop = removeOnSignal(remove)
  let bytes = 0
  try {
    const unpacked = await checkBackup(backup, async (chunk) => {
      await file.writeFile(chunk).catch((error: unknown) => {
        throw unwritable(path, error)
      })
      bytes += chunk.length
    })
    await file.sync()
    await file.close()
    await replaceDurably(temporary, path)
    return { ...unpacked, bytes }
  } catch (error) {
    await file.close()
    throw error instanceof RsmError ? error : unwritable(path, error)
  } finally {
    remove()
    stop()
  }
}
