import { type FileHandle, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../../../core/errors.ts'
import { compareVersions } from '../../../../core/release.ts'
import type { LogFile } from '../../../../disk/append-log.ts'
import { isMissing, writeFileDurably } from '../../../../disk/durable.ts'
import { serverVersion } from '../../../../disk/own-release.ts'
import { type Noun, nouns } from '../../records/records.ts'
import type { Tables, TablesView } from '../../tables.ts'
import { readFirst, watchLines } from '../read-file.ts'
import { encodeLine, isAsWritten } from './line.ts'

/**
 * Version of everything in the store's directory; a newer one is refused (reliability F19). Each new kind of
 * records raises it, because a skipped record may be the one that forbids something. 2: tombstones, runs,
 * keys. 3: webhooks, deliveries, schedules, slots. 4: files.
 */
export const formatVersion = 4

export const manifestName = 'store.json'

/** Snapshot, named by its last transaction, and the journals that follow it, by their first. */
export interface Generation {
  readonly snapshot: number
  readonly journals: readonly number[]
}

/**
 * Lists the files of the store. It is written last when a store is created, and before any file is removed.
 * So a listed file that is missing was taken away; the store is never mistaken for an empty one.
 */
export interface Manifest extends Generation {
  readonly format: number
  readonly storeId: string
  /** Version of rsm that wrote the store last; absent for 0.1.0. */
  readonly version?: string
  readonly previous: Generation | null
}

export function snapshotName(sequence: number): string {
  return `snapshot-${String(sequence).padStart(12, '0')}.jsonl`
}

export function journalName(first: number): string {
  return `journal-${String(first).padStart(12, '0')}.jsonl`
}

export function parseName(name: string): { kind: 'snapshot' | 'journal'; number: number } | null {
  const found = /^(snapshot|journal)-(\d{12,15})\.jsonl$/.exec(name)
  return found === null
    ? null
    : { kind: found[1] === 'journal' ? 'journal' : 'snapshot', number: Number(found[2]) }
}

/** Refuses to start on damaged data: which file, which byte, what to do. */
export function damaged(path: string, offset: number, problem: string): RsmError {
  return new RsmError('unavailable', `the store is damaged: ${path}, byte ${offset}: ${problem}`, {
    hint: 'nothing was changed; run `rsm server doctor`, or restore a backup with `rsm server restore` and keep this directory',
  })
}

export function checkFormat(path: string, format: unknown, version?: unknown): void {
  if (typeof format !== 'number') throw damaged(path, 0, 'no format version')
  if (format <= formatVersion) return
  throw new NewerStore(path, `format ${format}; this version reads up to ${formatVersion}`).by(version)
}

/** Refuses to start on intact data of a newer version. */
export class NewerStore extends RsmError {
  readonly #path: string
  readonly #what: string

  constructor(path: string, what: string, version?: string) {
    const which = version === undefined ? 'the newer rsm' : `rsm ${version}`
    super('unavailable', `${path} was written by a newer rsm (${version ? `${version}: ` : ''}${what})`, {
      hint: `nothing was changed; start ${which}, or restore a backup of the data directory from before the upgrade`,
    })
    this.#path = path
    this.#what = what
  }

  /** Adds the version in the manifest, if that is newer. */
  by(version: unknown): NewerStore {
    const isNewer = typeof version === 'string' && compareVersions(version, serverVersion())?.isNewer === true
    return isNewer ? new NewerStore(this.#path, this.#what, version) : this
  }
}

/** Reads a required file; its absence is damage, never an empty store. */
export async function readRequired(path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    if (isMissing(error)) throw damaged(path, 0, 'the file is missing')
    throw error
  }
}

/** Null if there is no manifest. */
export async function readManifest(directory: string): Promise<Manifest | null> {
  const path = join(directory, manifestName)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
  let manifest: Manifest
  try {
    manifest = JSON.parse(text) as Manifest
  } catch {
    throw damaged(path, 0, text === '' ? 'the file is empty' : 'not JSON')
  }
  checkFormat(path, manifest.format, manifest.version)
  const whole =
    typeof manifest.storeId === 'string' &&
    Number.isSafeInteger(manifest.snapshot) &&
    manifest.journals?.length > 0
  if (!whole) throw damaged(path, 0, 'it does not name the files of the store')
  return manifest
}

export async function writeManifest(directory: string, manifest: Manifest): Promise<void> {
  const written: Manifest = { ...manifest, version: serverVersion() }
  await writeFileDurably(join(directory, manifestName), `${JSON.stringify(written)}\n`)
}

/** Creates a journal from transaction `first` on, with a durable header; returns its size in bytes. */
export async function createJournal(directory: string, storeId: string, first: number): Promise<number> {
  const header = encodeLine(JSON.stringify({ format: formatVersion, storeId, first }))
  await writeFileDurably(join(directory, journalName(first)), header)
  return Buffer.byteLength(header)
}

export async function openJournal(directory: string, first: number, size: number): Promise<LogFile> {
  const path = join(directory, journalName(first))
  return { path, size, handle: await open(path, 'r+') }
}

/** Store at one transaction, with its files open. The caller releases it. */
export interface PinnedFiles {
  readonly storeId: string
  readonly tables: TablesView
  /** Reads the files. Errors: `unavailable` if a line does not match its checksum. */
  check(): Promise<void>
  release(): Promise<void>
}

/** Opens the files of a manifest with content `tables`; `journalSize`: valid bytes of the last journal. */
export async function pinFiles(
  directory: string,
  manifest: Manifest,
  tables: Tables,
  journalSize: number,
): Promise<PinnedFiles> {
  const records = new Map(nouns.map((noun) => [noun, tables.slice(noun)]))
  const view = {
    sequence: tables.sequence,
    lastIds: { ...tables.lastIds },
    slice: (noun: Noun) => records.get(noun) ?? [],
  }
  const files: { name: string; handle: FileHandle; size: number }[] = []
  const release = async () => {
    for (const { handle } of files) await handle.close()
  }
  try {
    const last = manifest.journals.at(-1)
    for (const name of [snapshotName(manifest.snapshot), ...manifest.journals.map(journalName)]) {
      const handle = await open(join(directory, name), 'r')
      const isLast = last !== undefined && name === journalName(last)
      files.push({ name, handle, size: isLast ? journalSize : (await handle.stat()).size })
    }
  } catch (error) {
    await release()
    throw error
  }
  async function check(): Promise<void> {
    for (const { name, handle, size } of files) {
      const refuse = (offset: number) => {
        throw new RsmError(
          'unavailable',
          `the store is damaged on disk: ${name}, byte ${offset}: the line does not match its checksum`,
          { hint: '`rsm server compact` rewrites the store from its memory; then make the backup again' },
        )
      }
      for await (const _ of watchLines(readFirst(handle, size, name), isAsWritten, refuse));
    }
  }
  return { storeId: manifest.storeId, tables: view, check, release }
}
