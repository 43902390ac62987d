import pg from 'pg'
import { RsmError } from '../../../../core/errors.ts'
import type { Reads } from '../../ports/store.ts'
import {
  type AnyRecord,
  type Id,
  type Index,
  indexList,
  type Key,
  type Noun,
  nouns,
} from '../../records/records.ts'
import type { Changes } from './changes.ts'
import type { Seen } from './open-transaction.ts'
import { uniqueOf } from './tables.ts'

const uniqueViolation = '23505'

export const isClash = (error: unknown): error is pg.DatabaseError =>
  error instanceof pg.DatabaseError && error.code === uniqueViolation

/** Returns `conflict` for the caller, or the error itself if its index is not in storage/records/records.ts. */
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

/** Finds the violated index; null for one of another table. */
function indexOf({ table, constraint }: pg.DatabaseError): { noun: Noun; index: Index } | null {
  for (const noun of nouns)
    for (const index of indexList[noun])
      if (table === noun && constraint === `${noun}_${index.name}_key`) return { noun, index }
  return null
}

/** Finds the record that has the key of one of these changes, after their rollback. */
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

type ById = ReadonlyMap<Id, AnyRecord | null>

/**
 * Whether each work of a shared transaction uses only unique keys that were free in its turn. PostgreSQL
 * checks keys at the commit, when a later work may have freed one that an earlier work must not have. `seen`
 * has each changed record as it was before all works.
 */
export function areApart(works: readonly Changes[], seen: Seen): boolean {
  return nouns.every((noun) => {
    const unique = uniqueOf(noun)
    if (unique.length === 0) return true
    const now = new Map<Id, AnyRecord | null>()
    const taken = unique.map((index) => ({ index, ids: new Map<Key, Id>() }))
    return works.every((work) => {
      const changed = work.own(noun)
      const previous = (id: Id) => now.get(id) ?? (now.has(id) ? null : (seen.get(noun, id) ?? null))
      const isFree = taken.every(
        ({ index, ids }) => frees(index, ids, changed, previous) && takes(index, ids, changed),
      )
      for (const [id, record] of changed) now.set(id, record)
      return isFree
    })
  })
}

/** Frees the previous keys of changed records; false if another record took one of them too early. */
function frees(
  index: Index,
  ids: Map<Key, Id>,
  changed: ById,
  previous: (id: Id) => AnyRecord | null,
): boolean {
  for (const id of changed.keys()) {
    const record = previous(id)
    const key = record && index.key(record)
    if (key === null) continue
    if ((ids.get(key) ?? id) !== id) return false
    ids.delete(key)
  }
  return true
}

function takes(index: Index, ids: Map<Key, Id>, changed: ById): boolean {
  for (const [id, record] of changed) {
    const key = record && index.key(record)
    if (key === null) continue
    if ((ids.get(key) ?? id) !== id) return false
    ids.set(key, id)
  }
  return true
}
