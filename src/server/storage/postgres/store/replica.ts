import { RsmError } from '../../../../core/errors.ts'
import { Mutex } from '../../../../core/mutex.ts'
import type { Found, Query, Reads } from '../../ports/store.ts'
import type { Id, IndexOf, Noun, Records } from '../../records/records.ts'
import { Tables } from '../../tables.ts'
import type { AnyQuery } from './reads.ts'
import type { PostgresStore } from './store.ts'

/** Nouns cached in memory: selectors need all records, and lists of hosts work without PostgreSQL (contract §12). */
const cached = ['hosts', 'clusters'] as const
type CachedNoun = (typeof cached)[number]

const isCached = (noun: Noun): noun is CachedNoun => (cached as readonly Noun[]).includes(noun)

/**
 * Wraps the store so that reads of hosts and clusters are served from memory. Each read first polls for changes, so that it sees
 * everything acknowledged by any server. While PostgreSQL is unreachable, it sees the last known state.
 */
export async function withReplica(store: PostgresStore): Promise<PostgresStore> {
  const tables = new Tables()
  /** Ids of records that may have changed since they were read; null for all. */
  const changed: Record<CachedNoun, Set<Id> | null> = { hosts: null, clusters: null }
  const reading = new Mutex()

  for (const noun of cached)
    store.watch(noun, (id) => {
      if (id === null) changed[noun] = null
      else changed[noun]?.add(id)
    })

  async function reload(noun: CachedNoun): Promise<void> {
    const ids = changed[noun]
    if (ids?.size === 0) return
    // Changes from here on need another read.
    changed[noun] = new Set()
    try {
      if (ids === null) await readAll(noun)
      else await readSome(noun, [...ids])
    } catch (error) {
      const since = changed[noun]
      changed[noun] = ids === null || since === null ? null : new Set([...ids, ...since])
      throw error
    }
  }

  async function readAll(noun: CachedNoun): Promise<void> {
    const { items } = await store.query(noun)
    const left = new Set(items.map(({ id }) => id))
    for (const { id } of tables.slice(noun))
      if (!left.has(id as number)) tables.apply({ noun, id, record: null })
    for (const record of items) tables.apply({ noun, id: record.id, record })
  }

  async function readSome(noun: CachedNoun, ids: readonly Id[]): Promise<void> {
    const records = await store.getMany(noun, ids as number[])
    for (const [at, id] of ids.entries()) tables.apply({ noun, id, record: records[at] ?? null })
  }

  /** Resolves when memory has everything acknowledged before the call, or PostgreSQL is unreachable. */
  async function current(noun: CachedNoun): Promise<void> {
    try {
      await store.refresh()
      await reading.run(() => reload(noun))
    } catch (error) {
      const isAway = error instanceof RsmError && error.code === 'unavailable'
      if (!isAway || changed[noun] === null) throw error
    }
  }

  const reads: Reads = {
    async get<N extends Noun>(noun: N, id: Records[N]['id']) {
      if (!isCached(noun)) return store.get(noun, id)
      await current(noun)
      return tables.get(noun, id) as Records[N] | undefined
    },
    async getMany<N extends Noun>(noun: N, ids: readonly Records[N]['id'][]) {
      if (!isCached(noun)) return store.getMany(noun, ids)
      await current(noun)
      return ids.map((id) => tables.get(noun, id) as Records[N] | undefined)
    },
    async find<N extends Noun>(noun: N, index: IndexOf<N>, key: string | number) {
      if (!isCached(noun)) return store.find(noun, index, key)
      await current(noun)
      return tables.find(noun, index, key) as Records[N][]
    },
    async query<N extends Noun>(noun: N, query?: Query<N>): Promise<Found<N>> {
      if (!isCached(noun)) return store.query(noun, query)
      await current(noun)
      return tables.query(noun, (query ?? {}) as AnyQuery) as unknown as Found<N>
    },
  }
  for (const noun of cached) await current(noun)
  // Inherit from the store, because a spread would freeze its getters.
  return Object.create(store, Object.getOwnPropertyDescriptors(reads)) as PostgresStore
}
