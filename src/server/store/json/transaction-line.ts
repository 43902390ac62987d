import { type Noun, nouns } from '../records.ts'
import { freeze } from './freeze.ts'
import { encodeLine } from './line.ts'
import type { AnyRecord, Change, Id, Tables } from './tables.ts'

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

/** Applies a journal line to the tables; answers what is wrong with it, or null. */
export function replay(value: Record<string, unknown>, tables: Tables): string | null {
  const { seq, ids = {}, put = {}, remove = {} } = value as unknown as TransactionBody
  if (seq !== tables.sequence + 1) return `transaction ${seq} follows ${tables.sequence}: there is a gap`
  for (const noun of [...Object.keys(put), ...Object.keys(remove), ...Object.keys(ids)]) {
    if (!nouns.includes(noun as Noun)) return `unknown kind of records ${noun}`
  }
  for (const noun of nouns) {
    for (const id of remove[noun] ?? []) tables.apply({ noun, id, record: null })
    for (const record of put[noun] ?? []) tables.apply({ noun, id: record.id, record: freeze(record) })
    tables.raiseId(noun, ids[noun] ?? 0)
  }
  tables.sequence = seq
  return null
}
