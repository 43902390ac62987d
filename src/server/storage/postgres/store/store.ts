import { randomBytes } from 'node:crypto'
import { RsmError } from '../../../../core/errors.ts'
import { Mutex } from '../../../../core/mutex.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Found, Query, Reads, Store, Transaction } from '../../ports/store.ts'
import type { authors, Id, IndexOf, Noun, Records } from '../../records/records.ts'
import { Tables } from '../../tables.ts'
import type { Ask, Database, Isolation, Statement } from '../connection/database.ts'
import { isAway } from '../connection/failure.ts'
import { Changes, createIds, type Open, Seen, type Sent } from './changes.ts'
import { forgetFutureXids, openFeed } from './feed.ts'
import { type AnyQuery, createReads } from './reads.ts'
import { askThrough, conflictOf, isClash, type RunOpen, TransactionQueue, viewOf } from './transactions.ts'

export interface PostgresStore extends Store {
  /**
   * Like `transact`, with statements of other ports in the same transaction: `ask` sees the puts and removals of `tx`. It runs
   * concurrently with other transactions of this server.
   */
  transactAsk<T>(work: (tx: Transaction, ask: Ask) => Promise<T>): Promise<T>
  /**
   * Like `transactAsk`, for work that often runs concurrently and should not be repeated. Records that `work`
   * gets by id are locked; it must `lock` anything else that it decides on by a name.
   */
  transactLocked<T>(work: (tx: Transaction, ask: Ask) => Promise<T>): Promise<T>
  /** Reads changes of other servers now, and notifies watchers. */
  poll(): void
  /** Number of queued transactions. */
  readonly queueLength: number
}

interface PostgresStoreOptions {
  /** Already migrated. The caller closes it, after the store. */
  readonly database: Database
  readonly log: Log
}

/** Opens the store; the first server creates its id. Errors: `unavailable`. */
export async function openPostgresStore({ database, log }: PostgresStoreOptions): Promise<PostgresStore> {
  const storeId = await nameStore(database)
  await forgetFutureXids(database)
  const feed = await openFeed(database, log)
  const ids = createIds()
  const reads = createReads((statement, values) => database.ask('api', statement, values))
  let isClosed = false

  const runAs = async <T>(isolation: Isolation, work: (open: Open) => Promise<T>): Promise<T> => {
    let sent: Sent = { xid: null, changed: [] }
    try {
      const value = await database.transaction(
        'api',
        async (ask) => {
          feed.forget(sent)
          sent = { xid: null, changed: [] }
          const done = await work({ ask, ids, sent, seen: new Seen() })
          feed.expect(sent)
          return done
        },
        isolation,
      )
      feed.committed(sent)
      return value
    } catch (error) {
      feed.forget(sent)
      // The commit may have succeeded.
      if (isAway(error)) feed.committed(sent)
      throw error
    }
  }
  const run: RunOpen = (work) => runAs('serializable', work)
  const queue = new TransactionQueue(run, reads)

  async function transactAs<T>(
    isolation: Isolation,
    work: (tx: Transaction, ask: Ask) => Promise<T>,
    isAgain = false,
  ): Promise<T> {
    if (isClosed) throw new RsmError('unavailable', 'the store is closed')
    let changes = new Changes()
    try {
      return await runAs(isolation, async (open) => {
        changes = new Changes()
        const tx = viewOf(open, changes, isolation === 'read committed')
        const value = await work(tx, askThrough(open, changes))
        await changes.send(open)
        return value
      })
    } catch (error) {
      if (!isClash(error)) throw error
      // It may have clashed with a record that it had not seen; retry once with the current ones.
      if (!isAgain) return transactAs(isolation, work, true)
      throw await conflictOf(error, changes, reads)
    }
  }

  return {
    ...reads,
    storeId,
    get readOnlyReason() {
      return database.refusal
    },
    get queueLength() {
      return queue.waiting
    },
    transact: (work) => queue.enqueue(work),
    transactAsk: (work) => transactAs('serializable', work),
    transactLocked: (work) => transactAs('read committed', work),
    async textBytes(noun) {
      const rows = await database.ask<{ author: string; bytes: number }>('api', textBytesOf[noun])
      return new Map(rows.map(({ author, bytes }) => [author, bytes]))
    },
    watch: (noun, changed) => feed.watch(noun, changed),
    refresh: () => feed.refresh(),
    poll: () => feed.poll(),
    async close() {
      isClosed = true
      await queue.close()
      await feed.close()
    },
  }
}

/** The same authors as in storage/records/records.ts. */
const textBytesOf: Record<keyof typeof authors, Statement> = {
  scripts: bytesBy('scripts', `coalesce(rec->>'changedBy', rec->>'createdBy')`),
  schedules: bytesBy('schedules', `rec->>'owner'`),
  tasks: bytesBy('tasks', `rec->>'createdBy'`, `where status = 'RUNNING'`),
}

function bytesBy(noun: keyof typeof authors, author: string, where = ''): Statement {
  const text = `select ${author} as author, sum(octet_length(rec::text))::bigint as bytes from rsm.${noun} ${where} group by 1`
  return { name: `store text bytes ${noun}`, text }
}

async function nameStore(database: Database): Promise<string> {
  const name = randomBytes(16).toString('base64url')
  const [row] = await database.ask<{ store_id: string }>(
    'api',
    'update rsm.cluster set store_id = coalesce(store_id, $1) returning store_id',
    [name],
  )
  if (!row) throw new Error('rsm.cluster has one row from the first migration on')
  return row.store_id
}

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
