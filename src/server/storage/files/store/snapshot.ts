import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Adapter } from 'lowdb'
import { replaceDurably, temporaryName } from '../../../../disk/durable.ts'
import { type AnyRecord, type Noun, nouns } from '../../records/records.ts'
import { freeze, Tables } from '../../tables.ts'
import { checkFormat, damaged, formatVersion, NewerStore, readRequired, snapshotName } from './files.ts'
import { encodeLine, type Line, readLines, unknownKind } from './line.ts'

/**
 * Approximate characters of records per line: a few milliseconds of work between two turns of the event loop.
 */
const sliceLength = 128 * 1024

/**
 * lowdb adapter for a snapshot file: a header, lines of records, and a last line with their counts, each with
 * its checksum. `read` loads the snapshot `sequence`; `write` creates the one named after its tables.
 */
export class SnapshotAdapter implements Adapter<Tables> {
  /** Size in bytes of the snapshot last read or written. */
  bytes = 0
  private readonly directory: string
  private readonly storeId: string
  private readonly sequence: number
  private readonly signal: AbortSignal

  constructor(directory: string, storeId: string, sequence: number, signal: AbortSignal) {
    this.directory = directory
    this.storeId = storeId
    this.sequence = sequence
    this.signal = signal
  }

  async read(): Promise<Tables> {
    const path = join(this.directory, snapshotName(this.sequence))
    const file = await readRequired(path)
    if (file.length === 0) throw damaged(path, 0, 'the file is empty')
    const tables = new Tables()
    let ended = false
    for (const line of readLines(file)) {
      if (line.value === null || ended)
        throw damaged(path, line.offset, 'the line does not match its checksum')
      if (line.offset === 0) this.readHeader(path, line.value, tables)
      else if ('end' in line.value) ended = this.readEnd(path, line, tables)
      else readRecords(path, line, tables)
    }
    if (!ended) throw damaged(path, file.length, 'the file is cut off')
    this.bytes = file.length
    return tables
  }

  /** Writes the tables as they are now, without blocking the event loop or later writes. */
  async write(tables: Tables): Promise<void> {
    const { sequence } = tables
    const lastIds = { ...tables.lastIds }
    const view = nouns.map((noun) => ({ noun, records: tables.slice(noun) }))
    const path = join(this.directory, snapshotName(sequence))
    const temporary = temporaryName(path)
    const handle = await open(temporary, 'wx', 0o600)
    try {
      let bytes = 0
      for (const line of lines({ format: formatVersion, storeId: this.storeId, sequence, lastIds }, view)) {
        this.signal.throwIfAborted()
        const data = Buffer.from(line)
        bytes += data.length
        await handle.writeFile(data)
      }
      await handle.sync()
      await handle.close()
      await replaceDurably(temporary, path)
      this.bytes = bytes
    } catch (error) {
      await handle.close()
      await rm(temporary, { force: true })
      throw error
    }
  }

  private readHeader(path: string, header: Record<string, unknown>, tables: Tables): void {
    checkFormat(path, header['format'])
    if (header['storeId'] !== this.storeId) throw damaged(path, 0, 'it belongs to another store')
    if (header['sequence'] !== this.sequence)
      throw damaged(path, 0, 'its header does not match its file name')
    tables.sequence = this.sequence
    Object.assign(tables.lastIds, header['lastIds'])
  }

  private readEnd(path: string, line: Line, tables: Tables): boolean {
    const counts = line.value?.['end'] as Partial<Record<Noun, number>>
    for (const noun of nouns) {
      if ((counts[noun] ?? 0) !== tables.count(noun)) throw damaged(path, line.offset, `${noun} are missing`)
    }
    return true
  }
}

function readRecords(path: string, line: Line, tables: Tables): void {
  const { noun, records } = line.value as { noun: Noun; records: AnyRecord[] }
  if (!nouns.includes(noun)) throw new NewerStore(path, unknownKind(noun))
  for (const record of records) tables.apply({ noun, id: record.id, record: freeze(record) })
}

function* lines(header: object, view: { noun: Noun; records: AnyRecord[] }[]): Generator<string> {
  yield encodeLine(JSON.stringify(header))
  for (const { noun, records } of view) {
    let slice: string[] = []
    let length = 0
    for (const record of records) {
      const json = JSON.stringify(record)
      slice.push(json)
      length += json.length
      if (length < sliceLength) continue
      yield encodeLine(`{"noun":"${noun}","records":[${slice.join(',')}]}`)
      slice = []
      length = 0
    }
    if (slice.length > 0) yield encodeLine(`{"noun":"${noun}","records":[${slice.join(',')}]}`)
  }
  const end = Object.fromEntries(view.map(({ noun, records }) => [noun, records.length]))
  yield encodeLine(JSON.stringify({ end }))
}
