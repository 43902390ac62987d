import type { Found, Query, Reads } from '../../ports/store.ts'
import { type AnyRecord, type Id, type IndexOf, type Noun, type Records } from '../../records/records.ts'
import type { Ask } from '../connection/database.ts'
import { tableOf } from './tables.ts'
import { type AnyQuery, keyOf, knownIds, statementOf } from './where.ts'

interface Row {
  rec: AnyRecord
}

/**
 * Reads what other transactions have committed, or what a transaction sees, by the way that it asks. `isLocking`: what is read by
 * its id is nobody else's until the end of the transaction.
 */
export function createReads(ask: Ask, isLocking = false): Reads {
  async function getMany<N extends Noun>(
    noun: N,
    ids: readonly Id[],
  ): Promise<(Readonly<Records[N]> | undefined)[]> {
    const table = tableOf(noun)
    const known = knownIds(table, ids)
    if (known.length === 0) return ids.map(() => undefined)
    const statement = {
      name: `store ${isLocking ? 'lock' : 'get'} ${noun}`,
      text: `select rec from rsm.${noun} where id = any($1::${table.idType}[])${isLocking ? ' order by id for update' : ''}`,
    }
    const found = new Map((await ask<Row>(statement, [known])).map(({ rec }) => [rec.id, rec]))
    return ids.map((id) => found.get(id) as Records[N] | undefined)
  }

  return {
    getMany,
    get: async (noun, id) => (await getMany(noun, [id]))[0],
    async find<N extends Noun>(noun: N, index: IndexOf<N>, key: string | number) {
      const sought = keyOf(noun, index, key)
      if (!sought) return []
      const statement = {
        name: `store find ${noun} ${index}`,
        text: `select rec from rsm.${noun} where "${index}" = $1::${sought.type} order by id`,
      }
      return (await ask<Row>(statement, [sought.value])).map(({ rec }) => rec as Records[N])
    },
    async query<N extends Noun>(noun: N, query?: Query<N>): Promise<Found<N>> {
      const { text, values } = statementOf(noun, (query ?? {}) as AnyQuery)
      const rows = await ask<{ total: number | null; rec: Records[N] | null }>(text, values)
      const items = rows.flatMap(({ rec }) => rec ?? [])
      return { items, total: rows[0]?.total ?? items.length }
    },
  }
}
