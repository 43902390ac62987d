import pg from 'pg'
import { RsmError } from '../../../../core/errors.ts'
import type { Query, Reads, Transaction } from '../../ports/store.ts'
import {
  type AnyRecord,
  type Id,
  type Index,
  type IndexOf,
  indexList,
  type Key,
  type Noun,
  nouns,
  type Records,
} from '../../records/records.ts'
import { freeze } from '../../tables.ts'
import type { Ask } from '../connection/database.ts'
import { isAway } from '../connection/failure.ts'
import { Changes, type Open, type Seen } from './changes.ts'
import { createReads } from './reads.ts'
import { tableOf, uniqueOf } from './tables.ts'

/** Maximum works per transaction and commit of PostgreSQL, because a conflict repeats all of them. */
const maxBatch = 64
/** Queue limit, reached only if PostgreSQL hangs: then refuse further work. */
const maxQueued = 20_000

/** Seed that hashes names to advisory locks. */
const nameLocks = 7_263_005

type Work = (tx: Transaction) => unknown
type Outcome = { value: unknown } | { error: unknown }

interface Waiting {
  readonly work: Work
  readonly settle: (outcome: Outcome) => void
}

/** Runs work in one transaction, again after a conflict, and notifies watchers of its changes. */
export type RunOpen = <T>(work: (open: Open) => Promise<T>) => Promise<T>

/** Thrown if works must run one by one, because their changes cannot be separated. */
class Entangled extends Error {}

/**
 * Runs the transactions of one process in order, many in one transaction of PostgreSQL. Otherwise many agents
 * that register with one token would conflict with each other.
 */
export class TransactionQueue {
  readonly #run: RunOpen
  readonly #reads: Reads
  readonly #queue: Waiting[] = []
  #running: Promise<void> | null = null
  #isClosed = false

  constructor(run: RunOpen, reads: Reads) {
    this.#run = run
    this.#reads = reads
  }

  get waiting(): number {
    return this.#queue.length
  }

  enqueue<T>(work: (tx: Transaction) => Promise<T> | T): Promise<T> {
    if (this.#isClosed) return Promise.reject(new RsmError('unavailable', 'the store is closed'))
    if (this.#queue.length >= maxQueued)
      return Promise.reject(new RsmError('unavailable', 'too many writes wait for the store'))
    return new Promise<T>((resolve, reject) => {
      const settle = (outcome: Outcome) =>
        'error' in outcome ? reject(outcome.error) : resolve(outcome.value as T)
      this.#queue.push({ work, settle })
      this.#running ??= this.#drain()
    })
  }

  /** Resolves when all queued work is done. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running
  }

  async #drain(): Promise<void> {
    // Include work that arrives in the same turn of the event loop.
    await Promise.resolve()
    while (this.#queue.length > 0) await this.#runBatch(this.#queue.splice(0, maxBatch))
    this.#running = null
  }

  /** Never rejects. */
  async #runBatch(all: readonly Waiting[], isAgain = false): Promise<void> {
    const [only] = all
    if (!only) return
    let changes = new Changes()
    try {
      const outcomes = await this.#run((open) => {
        changes = new Changes()
        return all.length === 1 ? runOne(open, only, changes) : runEach(open, all, changes)
      })
      for (const [at, { settle }] of all.entries()) settle(outcomes[at] as Outcome)
    } catch (error) {
      if (all.length > 1 && !isAway(error)) for (const one of all) await this.#runBatch([one])
      // It may have clashed with a record that it had not seen; retry once with the current ones.
      else if (isClash(error) && !isAgain) await this.#runBatch(all, true)
      else await this.#refuse(all, error, changes)
    }
  }

  async #refuse(all: readonly Waiting[], fault: unknown, changes: Changes): Promise<void> {
    const error = isClash(fault)
      ? await conflictOf(fault, changes, this.#reads).catch((other: unknown) => other)
      : fault
    for (const { settle } of all) settle({ error })
  }
}

async function runOne(open: Open, { work }: Waiting, changes: Changes): Promise<Outcome[]> {
  const value = await work(viewOf(open, changes))
  await changes.send(open)
  return [{ value }]
}

async function runEach(open: Open, all: readonly Waiting[], changes: Changes): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  const done: Changes[] = []
  for (const { work } of all) {
    const own = new Changes(changes)
    try {
      outcomes.push({ value: await work(viewOf(open, own)) })
      own.merge()
      done.push(own)
    } catch (error) {
      if (own.isSent) throw new Entangled()
      outcomes.push({ error })
    }
  }
  await changes.see(open)
  if (!areApart(done, open.seen)) throw new Entangled()
  await changes.send(open)
  return outcomes
}

/**
 * Makes the `tx` of a transaction. Puts and removals wait in `changes` until PostgreSQL must see them.
 * `isLocking`: the transaction is READ COMMITTED and locks records that it reads by id.
 */
export function viewOf(open: Open, changes: Changes, isLocking = false): Transaction {
  const { ask, ids, seen } = open
  const reads = createReads(ask, isLocking)

  async function getMany<N extends Noun>(noun: N, wanted: readonly Id[]) {
    const changed = wanted.map((id) => changes.get(noun, id))
    const missing = wanted.filter((_, at) => changed[at] === undefined)
    const read = missing.length === 0 ? [] : await reads.getMany(noun, missing)
    for (const [at, id] of missing.entries()) seen.note(noun, id, read[at] as AnyRecord | undefined)
    let next = 0
    return changed.map((record) =>
      record === undefined ? read[next++] : ((record as Records[N] | null) ?? undefined),
    )
  }

  return {
    getMany,
    get: async (noun, id) => (await getMany(noun, [id]))[0],
    async find<N extends Noun>(noun: N, index: IndexOf<N>, key: Key) {
      const found = (await reads.find(noun, index, key)) as Records[N][]
      for (const record of found)
        if (changes.get(noun, record.id) === undefined) seen.note(noun, record.id, record)
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
      // SERIALIZABLE needs no locks: it repeats work that conflicts.
      if (isLocking) await ask('select pg_advisory_xact_lock(hashtextextended($1, $2))', [name, nameLocks])
    },
    put(noun, record) {
      tableOf(noun)
      changes.set(noun, record.id, freeze(record))
    },
    remove: (noun, id) => changes.set(tableOf(noun).noun, id, null),
  }
}

/** Runs statements of other ports in the same transaction; they see its puts and removals. */
export const askThrough =
  (open: Open, changes: Changes): Ask =>
  async (statement, values) => {
    await changes.send(open)
    return open.ask(statement, values)
  }

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
function areApart(works: readonly Changes[], seen: Seen): boolean {
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
