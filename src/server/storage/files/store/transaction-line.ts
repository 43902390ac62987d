import { type AnyRecord, type Id, type Noun, nouns } from '../../records/records.ts'
import { freeze } from '../../tables/freeze.ts'
import type { Change, Tables } from '../../tables/tables.ts'
import { encodeLine } from './line.ts'

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
