import type { Ask } from '../connection/database.ts'
import type { Numbered } from './tables.ts'

/** Ids of one process's transactions, from sequences that no transaction takes back. */
export interface Ids {
  next(ask: Ask, noun: Numbered): Promise<number>
  last(ask: Ask, noun: Numbered): Promise<number>
  /** No id up to this one is given out again. */
  raise(ask: Ask, noun: Numbered, id: number): Promise<void>
}

const lastOf = (noun: Numbered) =>
  `(select case when is_called then last_value else 0 end from rsm.${noun}_ids)`

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
