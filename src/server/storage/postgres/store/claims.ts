import { type AnyRecord, type Id, type Index, type Key, nouns } from '../../records/records.ts'
import type { Changes } from './changes.ts'
import type { Seen } from './seen.ts'
import { uniqueOf } from './tables.ts'

type ById = ReadonlyMap<Id, AnyRecord | null>

/**
 * Whether each of these works, which follow each other in one transaction, has unique keys that none before it has taken. PostgreSQL
 * looks at them when the transaction commits: by then a later work may have freed a key that an earlier one should not have had.
 * `seen` has each record that they have changed, as it was before all of them.
 */
export function areApart(works: readonly Changes[], seen: Seen): boolean {
  return nouns.every((noun) => {
    const unique = uniqueOf(noun)
    if (unique.length === 0) return true
    const now = new Map<Id, AnyRecord | null>()
    const taken = unique.map((index) => ({ index, ids: new Map<Key, Id>() }))
    return works.every((work) => {
      const changed = work.own(noun)
      const former = (id: Id) => now.get(id) ?? (now.has(id) ? null : (seen.get(noun, id) ?? null))
      const isFree = taken.every(
        ({ index, ids }) => frees(index, ids, changed, former) && takes(index, ids, changed),
      )
      for (const [id, record] of changed) now.set(id, record)
      return isFree
    })
  })
}

/** False where another record has taken a key while one of these had it. */
function frees(
  index: Index,
  ids: Map<Key, Id>,
  changed: ById,
  former: (id: Id) => AnyRecord | null,
): boolean {
  for (const id of changed.keys()) {
    const record = former(id)
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
