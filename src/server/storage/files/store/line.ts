import { hash } from 'node:crypto'
import { type AnyRecord, type Id, type Noun, nouns } from '../../records/records.ts'
import { type Change, freeze, type Tables } from '../../tables.ts'

const prefix = '{"check":"'
const checkLength = 16
/** Start of the checked text: after the checksum, its closing quote and the comma. */
const bodyStart = prefix.length + checkLength + 2
const newline = 10

/** Line of a journal or snapshot from a JSON object: its first field is the checksum of the rest. */
export function encodeLine(json: string): string {
  const body = json.slice(1)
  return `${prefix}${checksum(body)}",${body}\n`
}

/** First 64 bits of SHA-256: fast with hardware support, and long enough to detect any accident. */
function checksum(body: string | Uint8Array): string {
  return hash('sha256', body, 'hex').slice(0, checkLength)
}

/**
 * Content of a file at one offset: a line with a valid checksum, or bytes up to the next newline without one.
 */
export interface Line {
  offset: number
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

/** Whether a line, without its newline, matches its checksum. */
export function isAsWritten(line: Buffer): boolean {
  if (line.length < bodyStart || line.toString('latin1', 0, prefix.length) !== prefix) return false
  const check = line.toString('latin1', prefix.length, prefix.length + checkLength)
  return check === checksum(line.subarray(bodyStart))
}

function decode(line: Buffer): Record<string, unknown> | null {
  if (!isAsWritten(line)) return null
  return JSON.parse(`{${line.toString('utf8', bodyStart)}`) as Record<string, unknown>
}

interface TransactionBody {
  seq: number
  /** Last id given out, for nouns of which it gave one. */
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

export const unknownKind = (noun: string): string => `it has records of an unknown kind: ${noun}`

/** First unknown kind of records in a line, or null. The line is intact, so a newer version wrote it. */
export function unknownNoun(value: Record<string, unknown>): string | null {
  const { ids = {}, put = {}, remove = {} } = value as unknown as TransactionBody
  const named = [...Object.keys(put), ...Object.keys(remove), ...Object.keys(ids)]
  return named.find((noun) => !nouns.includes(noun as Noun)) ?? null
}

/** Applies a journal line to the tables; returns an error text, or null. */
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
