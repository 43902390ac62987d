import pg from 'pg'
import { RsmError } from '../../../../core/errors.ts'
import type { Reads } from '../../ports/store.ts'
import { type Id, type Index, indexList, type Noun, nouns } from '../../records/records.ts'
import type { Changes } from './changes.ts'

const uniqueViolation = '23505'

/** Whether a unique index forbids what a transaction wrote. */
export const isClash = (error: unknown): error is pg.DatabaseError =>
  error instanceof pg.DatabaseError && error.code === uniqueViolation

/** The index that a clash is about; null for one that is of no noun. */
function indexOf({ table, constraint }: pg.DatabaseError): { noun: Noun; index: Index } | null {
  for (const noun of nouns)
    for (const index of indexList[noun])
      if (table === noun && constraint === `${noun}_${index.name}_key`) return { noun, index }
  return null
}

/** The record that has the key of one of these changes, after their transaction has been undone. */
async function otherOf(noun: Noun, index: Index, changes: Changes, reads: Reads): Promise<Id | null> {
  const changed = changes.of(noun)
  const records = [...changed.values()].filter((record) => record !== null)
  for (const { id, key } of records.map((record) => ({ id: record.id, key: index.key(record) }))) {
    if (key === null) continue
    const own = records.find((record) => record.id !== id && index.key(record) === key)
    if (own) return own.id
    const found = await reads.find(noun, index.name as never, key)
    const other = found.find((record) => !changed.has(record.id))
    if (other) return other.id
  }
  return null
}

/** The `conflict` that a caller hears; another error where the clash is not of an index of storage/records/records.ts. */
export async function conflictOf(error: pg.DatabaseError, changes: Changes, reads: Reads): Promise<unknown> {
  const at = indexOf(error)
  if (!at) return error
  const { noun, index } = at
  const other = await otherOf(noun, index, changes, reads)
  const which = other === null ? '' : ` (id ${other})`
  return new RsmError('conflict', `another of the ${noun} has this ${index.name} already${which}`, {
    cause: error,
  })
}
