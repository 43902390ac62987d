import { hash } from 'node:crypto'
import { type AnyRecord, type Id, type Noun, nouns } from '../../records/records.ts'
import { type Change, freeze, type Tables } from '../../tables/tables.ts'

const prefix = '{"check":"'
const checkLength = 16
/** Where the checked text begins: after the checksum, its closing quote and the comma. */
const bodyStart = prefix.length + checkLength + 2
const newline = 10

/** One line of journal or snapshot, from the JSON text of an object: its first field is the checksum of the rest. */
export function encodeLine(json: string): string {
  const body = json.slice(1)
  return `${prefix}${checksum(body)}",${body}\n`
}

/** The first 64 bits of SHA-256: as fast as others here with the processor's help, and no accident passes it. */
function checksum(body: string | Uint8Array): string {
  return hash('sha256', body, 'hex').slice(0, checkLength)
}

/** What stands in a file at one place: a line that proves itself, or bytes up to the next newline that do not. */
export interface Line {
  /** Bytes from the start of the file. */
  offset: number
  /** Just after the newline, or the end of the file. */
  end: number
  value: Record<string, unknown> | null
}

export function* readLines(file: Buffer, from = 0): Generator<Line> {
  let offset = from
  while (offset < file.length) {
    const at = file.indexOf(newline, offset)
    const end = at < 0 ? file.length : at + 1
    yield { offset, end, value: at < 0 ? null : decode(file.subarray(offset, at)) }
    offset = end
  }
}

/** Whether a line, without its newline, is what was written. */
export function isAsWritten(line: Buffer): boolean {
  if (line.length < bodyStart || line.toString('latin1', 0, prefix.length) !== prefix) return false
  const check = line.toString('latin1', prefix.length, prefix.length + checkLength)
  return check === checksum(line.subarray(bodyStart))
}

function decode(line: Buffer): Record<string, unknown> | null {
  if (!isAsWritten(line)) return null
  return JSON.parse(`{${line.toString('utf8', bodyStart)}`) as Record<string, unknown>
}

/** One transaction as the journal holds it. */
interface TransactionBody {
  seq: number
  /** The last id given out, for nouns of which it gave one. */
  ids?: Partial<Record<Noun, number>>
  put?: Partial<Record<Noun, AnyRecord[]>>
  remove?: Partial<Record<Noun, Id[]>>
}

export function encodeTransaction(
  seq: number,
  changes: readonly Change[],
  lastIds: readonly (readonly [Noun, number])[],
): string {
  const body: TransactionBody = { seq }
  if (lastIds.length > 0) body.ids = Object.fromEntries(lastIds)
  for (const { noun, id, record } of changes) {
    if (record === null) ((body.remove ??= {})[noun] ??= []).push(id)
    else ((body.put ??= {})[noun] ??= []).push(record)
  }
  return encodeLine(JSON.stringify(body))
}

export const unknownKind = (noun: string): string =>
  `it has records of a kind that this one does not know: ${noun}`

/** The first kind of records in a line that this version does not know, or null: the line is whole, so a newer one wrote it. */
export function unknownNoun(value: Record<string, unknown>): string | null {
  const { ids = {}, put = {}, remove = {} } = value as unknown as TransactionBody
  const named = [...Object.keys(put), ...Object.keys(remove), ...Object.keys(ids)]
  return named.find((noun) => !nouns.includes(noun as Noun)) ?? null
}

/** Applies a journal line to the tables; answers what is wrong with it, or null. */
export function replay(value: Record<string, unknown>, tables: Tables): string | null {
  const { seq, ids = {}, put = {}, remove = {} } = value as unknown as TransactionBody
  if (seq !== tables.sequence + 1) return `transaction ${seq} follows ${tables.sequence}: there is a gap`
  for (const noun of nouns) {
    for (const id of remove[noun] ?? []) tables.apply({ noun, id, record: null })
    for (const record of put[noun] ?? []) tables.apply({ noun, id: record.id, record: freeze(record) })
    tables.raiseId(noun, ids[noun] ?? 0)
  }
  tables.sequence = seq
  return null
}
