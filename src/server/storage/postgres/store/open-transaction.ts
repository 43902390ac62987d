import type { AnyRecord, Id, Noun } from '../../records/records.ts'
import type { Ask } from '../connection/database.ts'
import type { Numbered, StoredNoun } from './tables.ts'

/** A running transaction of PostgreSQL. */
export interface Open {
  readonly ask: Ask
  readonly ids: Ids
  readonly sent: Sent
  readonly seen: Seen
}

/** Records that a transaction changed in PostgreSQL, and its transaction id. */
export interface Sent {
  xid: string | null
  readonly changed: { noun: StoredNoun; id: Id }[]
}

/** Records that a transaction read, as they were before its changes. */
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

/** Ids from sequences, which a rollback does not reset. */
interface Ids {
  next(ask: Ask, noun: Numbered): Promise<number>
  last(ask: Ask, noun: Numbered): Promise<number>
  /** Ensures that no id up to this one is given out again. */
  raise(ask: Ask, noun: Numbered, id: number): Promise<void>
}

export function createIds(): Ids {
  /** Highest id known to be given out. */
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
      // Uses `nextval`, because `setval` could reset ids that another server gets at the same time.
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
