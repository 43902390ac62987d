import type { AnyRecord, Id, Noun } from '../../records/records.ts'
import type { Ask } from '../connection/database.ts'
import type { Numbered, StoredNoun } from './tables.ts'

/** One transaction of PostgreSQL, while it runs. */
export interface Open {
  readonly ask: Ask
  readonly ids: Ids
  readonly sent: Sent
  readonly seen: Seen
}

/** Records that a transaction has changed in PostgreSQL, and the number that it has there. */
export interface Sent {
  xid: string | null
  readonly changed: { noun: StoredNoun; id: Id }[]
}

/** Records as they were before a transaction changed anything, as far as it has read them. */
export class Seen {
  readonly #byNoun = new Map<Noun, Map<Id, AnyRecord | undefined>>()

  note(noun: Noun, id: Id, record: AnyRecord | undefined): void {
    const byId = this.#byNoun.get(noun) ?? new Map<Id, AnyRecord | undefined>()
    if (!byId.has(id)) this.#byNoun.set(noun, byId.set(id, record))
  }

  has(noun: Noun, id: Id): boolean {
    return this.#byNoun.get(noun)?.has(id) === true
  }

  get(noun: Noun, id: Id): AnyRecord | undefined {
    return this.#byNoun.get(noun)?.get(id)
  }
}

/** Ids of one process's transactions, from sequences that no transaction takes back. */
interface Ids {
  next(ask: Ask, noun: Numbered): Promise<number>
  last(ask: Ask, noun: Numbered): Promise<number>
  /** No id up to this one is given out again. */
  raise(ask: Ask, noun: Numbered, id: number): Promise<void>
}

export function createIds(): Ids {
  /** The highest that is known to be given out. */
  const known = new Map<Numbered, number>()
  const note = (noun: Numbered, id: number): number => {
    known.set(noun, Math.max(known.get(noun) ?? 0, id))
    return id
  }
  return {
    async next(ask, noun) {
      const statement = { name: `store next ${noun}`, text: `select nextval('rsm.${noun}_ids') as id` }
      const [row] = await ask<{ id: number }>(statement)
      return note(noun, row?.id ?? 0)
    },
    async last(ask, noun) {
      const [row] = await ask<{ id: number }>(`select ${lastOf(noun)} as id`)
      return note(noun, row?.id ?? 0)
    },
    async raise(ask, noun, id) {
      if (id <= (known.get(noun) ?? 0)) return
      // One after the other: `setval` could take back what another server is given just now.
      await ask(
        `select count(nextval('rsm.${noun}_ids')) from generate_series(${lastOf(noun)} + 1, $1::bigint)`,
        [id],
      )
      note(noun, id)
    },
  }
}

const lastOf = (noun: Numbered) =>
  `(select case when is_called then last_value else 0 end from rsm.${noun}_ids)`
