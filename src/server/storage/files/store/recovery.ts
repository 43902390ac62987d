import { randomBytes } from 'node:crypto'
import { open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Low } from 'lowdb'
import type { LogFile } from '../../../../disk/append-log.ts'
import { isDiskFull, temporarySuffix, writeFileDurably } from '../../../../disk/durable.ts'
import { serverVersion } from '../../../../disk/own-release.ts'
import { Tables } from '../../tables.ts'
import {
  checkFormat,
  createJournal,
  damaged,
  formatVersion,
  journalName,
  type Manifest,
  manifestName,
  NewerStore,
  openJournal,
  parseName,
  readManifest,
  readRequired,
  snapshotName,
  writeManifest,
} from './files.ts'
import { type Line, readLines, replay, unknownKind, unknownNoun } from './line.ts'
import { SnapshotAdapter } from './snapshot.ts'

export type Log = (level: 'info' | 'warn' | 'error', message: string, fields: Record<string, unknown>) => void

export interface Recovered {
  manifest: Manifest
  /** Whether the manifest on disk names this version and its format; nothing may be written before. */
  isRaised: boolean
  model: Low<Tables>
  snapshot: SnapshotAdapter
  journal: LogFile
  /** Bytes of all journals since the snapshot. */
  journalBytes: number
}

export interface Loaded {
  model: Low<Tables>
  snapshot: SnapshotAdapter
  /** Valid bytes of all journals since the snapshot, and of the last one. */
  journalBytes: number
  size: number
  /** Bytes after them: an interrupted write that was never acknowledged. */
  tornBytes: number
}

/** Reads the files that a manifest lists, without changing them. Refuses damaged data. */
export async function load(directory: string, manifest: Manifest, signal: AbortSignal): Promise<Loaded> {
  try {
    return await read(directory, manifest, signal)
  } catch (error) {
    throw error instanceof NewerStore ? error.by(manifest.version) : error
  }
}

async function read(directory: string, manifest: Manifest, signal: AbortSignal): Promise<Loaded> {
  const snapshot = new SnapshotAdapter(directory, manifest.storeId, manifest.snapshot, signal)
  const model = new Low<Tables>(snapshot, new Tables())
  await model.read()
  let journalBytes = 0
  let journal = { size: 0, tornBytes: 0 }
  for (const first of manifest.journals) {
    const isLast = first === manifest.journals.at(-1)
    journal = await replayJournal(directory, manifest.storeId, first, model.data, isLast)
    journalBytes += journal.size
  }
  return { model, snapshot, journalBytes, ...journal }
}

/** Loads the store in a directory, or creates one if there never was any. Refuses damaged data. */
export async function recover(directory: string, log: Log, signal: AbortSignal): Promise<Recovered> {
  await removeTemporaries(directory)
  const found = (await readManifest(directory)) ?? (await create(directory, signal))
  const manifest = { ...found, format: formatVersion }
  const { model, snapshot, journalBytes, size, tornBytes } = await load(directory, found, signal)
  const last = manifest.journals.at(-1) ?? 0
  if (tornBytes > 0) await cutTail(join(directory, journalName(last)), size, log)
  await removeLeftovers(directory, manifest)
  const isOurs = found.format === formatVersion && found.version === serverVersion()
  const isRaised = isOurs || (await raiseFormat(directory, manifest, log))
  const journal = await openJournal(directory, last, size)
  return { manifest, isRaised, model, snapshot, journal, journalBytes }
}

/**
 * Raises the format before this version writes anything, so that an older one refuses the store. A full disk
 * does not prevent the start: the first write raises the format then.
 */
async function raiseFormat(directory: string, manifest: Manifest, log: Log): Promise<boolean> {
  try {
    await writeManifest(directory, manifest)
    return true
  } catch (error) {
    if (!isDiskFull(error)) throw error
    log('warn', 'the disk is full: the format of the store could not be raised', { format: formatVersion })
    return false
  }
}

async function create(directory: string, signal: AbortSignal): Promise<Manifest> {
  await checkNeverUsed(directory)
  return makeStore(directory, randomBytes(16).toString('base64url'), new Tables(), signal)
}

export async function makeStore(
  directory: string,
  storeId: string,
  tables: Tables,
  signal: AbortSignal,
): Promise<Manifest> {
  const { sequence } = tables
  const first = sequence + 1
  const manifest: Manifest = {
    format: formatVersion,
    storeId,
    snapshot: sequence,
    journals: [first],
    previous: null,
  }
  await new SnapshotAdapter(directory, storeId, sequence, signal).write(tables)
  await createJournal(directory, storeId, first)
  await writeManifest(directory, manifest)
  return manifest
}

/** Files without a manifest: an interrupted first start, or a store whose manifest was removed. */
async function checkNeverUsed(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const file = parseName(name)
    if (file === null || (file.kind === 'snapshot' && file.number === 0)) continue
    if (file.kind === 'journal' && file.number === 1 && (await isUnused(directory, name))) continue
    throw damaged(join(directory, manifestName), 0, `the file is missing, but there is ${name}`)
  }
}

async function isUnused(directory: string, journal: string): Promise<boolean> {
  const file = await readRequired(join(directory, journal))
  return [...readLines(file)].length <= 1
}

/** Returns the valid size. Only the last journal can have a torn tail. */
async function replayJournal(
  directory: string,
  storeId: string,
  first: number,
  tables: Tables,
  isLast: boolean,
): Promise<{ size: number; tornBytes: number }> {
  const path = join(directory, journalName(first))
  const file = await readRequired(path)
  if (file.length === 0) throw damaged(path, 0, 'the file is empty')
  for (const line of readLines(file)) {
    if (line.offset === 0) checkHeader(path, line, storeId, first, tables)
    else if (line.value === null) {
      if (!isLast || !isTornTail(file, line.offset))
        throw damaged(path, line.offset, 'a line does not match its checksum')
      return { size: line.offset, tornBytes: file.length - line.offset }
    } else {
      const unknown = unknownNoun(line.value)
      if (unknown !== null) throw new NewerStore(path, unknownKind(unknown))
      const fault = replay(line.value, tables)
      if (fault !== null) throw damaged(path, line.offset, fault)
    }
  }
  return { size: file.length, tornBytes: 0 }
}

function checkHeader(path: string, line: Line, storeId: string, first: number, tables: Tables): void {
  if (line.value === null) throw damaged(path, 0, 'the header does not match its checksum')
  checkFormat(path, line.value['format'])
  if (line.value['storeId'] !== storeId) throw damaged(path, 0, 'it belongs to another store')
  if (line.value['first'] !== first) throw damaged(path, 0, 'its header does not match its file name')
  if (first !== tables.sequence + 1) {
    throw damaged(
      path,
      0,
      `it begins with transaction ${first}, but ${tables.sequence} came before: there is a gap`,
    )
  }
}

/**
 * An interrupted write is short, or ends in zeros where the file grew first; any other bad line is damage.
 */
function isTornTail(file: Buffer, offset: number): boolean {
  const lines = [...readLines(file, offset)]
  if (lines.some((line) => line.value !== null)) return false
  const tail = file.subarray(offset)
  return tail.includes(0) || (lines.length === 1 && tail.at(-1) !== 10)
}

async function cutTail(path: string, offset: number, log: Log): Promise<void> {
  const file = await readRequired(path)
  const kept = `${path}.${offset}.broken`
  await writeFileDurably(kept, file.subarray(offset))
  const handle = await open(path, 'r+')
  try {
    await handle.truncate(offset)
    await handle.sync()
  } finally {
    await handle.close()
  }
  log('warn', 'the last write to the journal was cut off; it had not been acknowledged', {
    file: path,
    offset,
    bytes: file.length - offset,
    kept,
  })
}

async function removeTemporaries(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name.endsWith(temporarySuffix)) await rm(join(directory, name), { force: true })
  }
}

/**
 * Removes leftovers of an unfinished compaction, and generations older than the previous one. A later journal
 * that holds transactions but is not in the manifest means that the manifest is an old copy: throws and
 * removes nothing.
 */
export async function removeLeftovers(directory: string, manifest: Manifest): Promise<void> {
  const kept = new Set(
    [manifest, ...(manifest.previous === null ? [] : [manifest.previous])].flatMap((generation) => [
      snapshotName(generation.snapshot),
      ...generation.journals.map(journalName),
    ]),
  )
  const leftovers = (await readdir(directory)).filter((name) => parseName(name) !== null && !kept.has(name))
  const newest = manifest.journals.at(-1) ?? 0
  for (const name of leftovers) {
    const file = parseName(name)
    if (file?.kind === 'journal' && file.number > newest && !(await isUnused(directory, name))) {
      throw damaged(join(directory, manifestName), 0, `it is older than ${name}`)
    }
  }
  for (const name of leftovers) await rm(join(directory, name), { force: true })
}
