import type { Query, Transaction } from '../../ports/store.ts'
import type { AnyRecord, Id, IndexOf, Key, Noun, Records } from '../../records/records.ts'
import { freeze } from '../../tables/freeze.ts'
import type { Ask } from '../connection/database.ts'
import type { Changes } from './changes.ts'
import type { Open } from './open.ts'
import { createReads } from './reads.ts'
import { tableOf } from './tables.ts'

/** Of the advisory locks that stand for names. */
const nameLocks = 7_263_005

/**
 * What a transaction does by `tx`: what it puts and removes waits in `changes` until PostgreSQL has to see it. `isLocking`: it is
 * READ COMMITTED, and locks what it reads by its id.
 */
export function viewOf(open: Open, changes: Changes, isLocking = false): Transaction {
  const { ask, ids, seen } = open
  const reads = createReads(ask, isLocking)

  async function getMany<N extends Noun>(noun: N, wanted: readonly Id[]) {
    const held = wanted.map((id) => changes.held(noun, id))
    const missing = wanted.filter((_, at) => held[at] === undefined)
    const read = missing.length === 0 ? [] : await reads.getMany(noun, missing)
    for (const [at, id] of missing.entries()) seen.note(noun, id, read[at] as AnyRecord | undefined)
    let next = 0
    return held.map((record) =>
      record === undefined ? read[next++] : ((record as Records[N] | null) ?? undefined),
    )
  }

  return {
    getMany,
    get: async (noun, id) => (await getMany(noun, [id]))[0],
    async find<N extends Noun>(noun: N, index: IndexOf<N>, key: Key) {
      const found = (await reads.find(noun, index, key)) as Records[N][]
      for (const record of found)
        if (changes.held(noun, record.id) === undefined) seen.note(noun, record.id, record)
      return changes.through(noun, index, key, found) as Records[N][]
    },
    async query<N extends Noun>(noun: N, query?: Query<N>) {
      await changes.send(open, noun)
      return reads.query(noun, query)
    },
    async nextId(noun) {
      const id = await ids.next(ask, noun)
      seen.note(noun, id, undefined)
      return id
    },
    lastId: (noun) => ids.last(ask, noun),
    async lock(name) {
      // SERIALIZABLE runs anew what others came in the way of.
      if (isLocking) await ask('select pg_advisory_xact_lock(hashtextextended($1, $2))', [name, nameLocks])
    },
    put(noun, record) {
      tableOf(noun)
      changes.set(noun, record.id, freeze(record))
    },
    remove: (noun, id) => changes.set(tableOf(noun).noun, id, null),
  }
}

/** Statements of other ports in the same transaction: they see what it has put and removed. */
export const askThrough =
  (open: Open, changes: Changes): Ask =>
  async (statement, values) => {
    await changes.send(open)
    return open.ask(statement, values)
  }
