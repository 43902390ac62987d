import { RsmError } from '../../../../core/errors.ts'
import type { AppendLog } from '../../../../disk/append-log.ts'
import { orderOf } from '../../ordered-records.ts'
import type { Found, Query, Transaction } from '../../ports/store.ts'
import {
  type AnyRecord,
  type Id,
  type IndexOf,
  indexList,
  type Key,
  type Noun,
  type Records,
} from '../../records/records.ts'
import {
  type AnyFound,
  type AnyQuery,
  type Change,
  conditionsOf,
  freeze,
  type Tables,
  windowOf,
} from '../../tables.ts'
import { encodeTransaction } from './line.ts'

/** More writes wait only if the disk hangs; then refusing is better than queueing. */
const maxUnanswered = 20_000

/** Transaction in flight to the disk; one without changes has no line, and only waits for earlier ones. */
interface Commit {
  readonly sequence: number
  readonly line: readonly Uint8Array[]
  readonly changes: readonly Change[]
  readonly lastIds: readonly (readonly [Noun, number])[]
}

interface Queued {
  work: (tx: Transaction) => unknown
  answer: (value: unknown) => void
  refuse: (error: unknown) => void
}

/**
 * Runs transactions one at a time on top of what earlier ones staged, and passes their changes to the disk.
 */
export class Transactions {
  private readonly tables: Tables
  private readonly journal: AppendLog
  /** Called for each durable transaction, before its caller resumes. */
  private readonly durable: (changes: readonly Change[]) => void
  private staged: Layer
  private sequence: number
  private readonly lastIds: Partial<Record<Noun, number>>
  private queue: Queued[] = []
  private running = Promise.resolve()
  private busy = false
  private unanswered = 0

  constructor(tables: Tables, journal: AppendLog, durable: (changes: readonly Change[]) => void) {
    this.tables = tables
    this.journal = journal
    this.durable = durable
    this.staged = new Layer(tables)
    this.sequence = tables.sequence
    this.lastIds = { ...tables.lastIds }
  }

  run<T>(work: (tx: Transaction) => Promise<T> | T): Promise<T> {
    if (this.journal.refusal !== null) return Promise.reject(this.journal.refusal)
    if (this.unanswered >= maxUnanswered) {
      return Promise.reject(new RsmError('unavailable', 'too many writes wait for the disk'))
    }
    this.unanswered++
    return new Promise<T>((resolve, reject) => {
      const answer = (value: unknown) => {
        this.unanswered--
        resolve(value as T)
      }
      const refuse = (error: unknown) => {
        this.unanswered--
        reject(error)
      }
      this.queue.push({ work, answer, refuse })
      if (!this.busy) this.running = this.drain()
    })
  }

  async idle(): Promise<void> {
    while (this.busy) await this.running
  }

  /** Drops everything that is not durable; a transaction still running on it cannot commit. */
  drop(): void {
    this.staged = new Layer(this.tables)
    this.sequence = this.tables.sequence
  }

  private settle({ sequence, changes, lastIds }: Commit): void {
    for (const change of changes) this.tables.apply(change)
    for (const [noun, id] of lastIds) this.tables.raiseId(noun, id)
    this.tables.sequence = sequence
    for (const change of changes) this.staged.settle(change)
    this.durable(changes)
  }

  private async drain(): Promise<void> {
    this.busy = true
    while (this.queue.length > 0) {
      for (const queued of this.queue.splice(0)) {
        try {
          // Most work never waits: then a whole queue is staged in one turn, and shares one fsync.
          const staging = this.stage(queued)
          if (staging !== null) await staging
        } catch (error) {
          queued.refuse(error)
        }
      }
    }
    // In the same turn as the last check of the queue, so that a later arrival starts a new drain.
    this.busy = false
  }

  /** Null if it completed synchronously. */
  private stage({ work, answer, refuse }: Queued): Promise<void> | null {
    if (this.journal.refusal !== null) throw this.journal.refusal
    const { staged } = this
    const changed = new Layer(staged)
    const given = new Map<Noun, number>()
    const finish = (value: unknown) => {
      if (this.staged !== staged) {
        throw (
          this.journal.refusal ??
          new RsmError('unavailable', 'an earlier write that this one depends on failed')
        )
      }
      const commit = this.commit(changed, [...given])
      this.journal.append(commit.line).then(() => {
        this.settle(commit)
        answer(value)
      }, refuse)
    }
    const result = work(this.view(changed, given))
    if (result instanceof Promise) return result.then(finish)
    finish(result)
    return null
  }

  private commit(changed: Layer, lastIds: Commit['lastIds']): Commit {
    const changes = changed.list()
    // A value may depend on writes that are not durable yet, so an answer without changes waits for them too.
    if (changes.length === 0 && lastIds.length === 0) {
      return { sequence: this.sequence, line: [], changes, lastIds }
    }
    for (const change of changes) checkUnique(changed, change)
    const sequence = this.sequence + 1
    const line = [Buffer.from(encodeTransaction(sequence, changes, lastIds))]
    this.sequence = sequence
    for (const change of changes) this.staged.set(change)
    return { sequence, line, changes, lastIds }
  }

  private view(changed: Layer, given: Map<Noun, number>): Transaction {
    const raise = (noun: Noun, id: number) => {
      this.lastIds[noun] = Math.max(this.lastIds[noun] ?? 0, id)
    }
    return {
      get: async <N extends Noun>(noun: N, id: Id) => changed.get(noun, id) as Records[N] | undefined,
      getMany: async <N extends Noun>(noun: N, ids: readonly Id[]) =>
        ids.map((id) => changed.get(noun, id) as Records[N] | undefined),
      find: async <N extends Noun>(noun: N, index: IndexOf<N>, key: Key) =>
        changed.find(noun, index, key) as Records[N][],
      query: async <N extends Noun>(noun: N, query?: Query<N>) =>
        changed.query(noun, (query ?? {}) as AnyQuery) as Found<N>,
      nextId: async (noun) => {
        const id = (this.lastIds[noun] ?? 0) + 1
        raise(noun, id)
        given.set(noun, id)
        return id
      },
      lastId: async (noun) => this.lastIds[noun] ?? 0,
      // Transactions already run one at a time.
      lock: async () => undefined,
      put: (noun, record) => {
        if (typeof record.id === 'number') raise(noun, record.id)
        changed.set({ noun, id: record.id, record: freeze(record) })
      },
      remove: (noun, id) => {
        if (changed.get(noun, id) !== undefined) changed.set({ noun, id, record: null })
      },
    }
  }
}

function checkUnique(changed: Layer, { noun, id, record }: Change): void {
  if (record === null) return
  for (const index of indexList[noun]) {
    const key = index.unique ? index.key(record) : null
    const other =
      key === null ? undefined : changed.find(noun, index.name, key).find((each) => each.id !== id)
    if (other !== undefined) {
      throw new RsmError('conflict', `another of the ${noun} has this ${index.name} already (id ${other.id})`)
    }
  }
}

/** Base of a layer: the durable tables, or another layer. */
interface Base {
  get(noun: Noun, id: Id): AnyRecord | undefined
  find(noun: Noun, index: string, key: Key): AnyRecord[]
  query(noun: Noun, query: AnyQuery): AnyFound
}

type Buckets = Map<string, Map<Key, Map<Id, AnyRecord>>>

/** Changes on top of an untouched base: those of one transaction, or all changes that are not durable yet. */
class Layer implements Base {
  private readonly base: Base
  private readonly changes = new Map<Noun, Map<Id, Change>>()
  /** By noun, built on first use: most transactions use no index. */
  private readonly buckets = new Map<Noun, Buckets>()

  constructor(base: Base) {
    this.base = base
  }

  get(noun: Noun, id: Id): AnyRecord | undefined {
    const change = this.changes.get(noun)?.get(id)
    return change === undefined ? this.base.get(noun, id) : (change.record ?? undefined)
  }

  find(noun: Noun, index: string, key: Key): AnyRecord[] {
    const below = this.base.find(noun, index, key)
    const changes = this.changes.get(noun)
    if (changes === undefined || changes.size === 0) return below
    const found = below.filter((record) => !changes.has(record.id))
    const ours = this.bucketsOf(noun, changes).get(index)?.get(key)
    if (ours === undefined || ours.size === 0) return found
    return [...found, ...ours.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  query(noun: Noun, query: AnyQuery): AnyFound {
    const changes = this.changes.get(noun)
    if (changes === undefined || changes.size === 0) return this.base.query(noun, query)
    const { where = {}, order = 'asc' } = query
    const conditions = conditionsOf(noun, where)
    const below = this.base.query(noun, { where }).items.filter(({ id }) => !changes.has(id))
    const ours = [...changes.values()]
      .flatMap(({ record }) => record ?? [])
      .filter((record) => conditions.every(({ test }) => test(record)))
    return windowOf([...below, ...ours].sort(orderOf(noun, order)), query)
  }

  set(change: Change): void {
    const { noun, id, record } = change
    let changes = this.changes.get(noun)
    if (changes === undefined) this.changes.set(noun, (changes = new Map()))
    const buckets = this.buckets.get(noun)
    if (buckets !== undefined) {
      removeFrom(buckets, noun, changes.get(id)?.record)
      addTo(buckets, noun, record)
    }
    changes.set(id, change)
  }

  /** Drops a change that the base has by now, unless a later one replaced it. */
  settle(change: Change): void {
    const { noun, id, record } = change
    const changes = this.changes.get(noun)
    if (changes?.get(id) !== change) return
    changes.delete(id)
    const buckets = this.buckets.get(noun)
    if (changes.size === 0) this.buckets.delete(noun)
    else if (buckets !== undefined) removeFrom(buckets, noun, record)
  }

  list(): Change[] {
    const list: Change[] = []
    for (const changes of this.changes.values()) for (const change of changes.values()) list.push(change)
    return list
  }

  private bucketsOf(noun: Noun, changes: Map<Id, Change>): Buckets {
    let buckets = this.buckets.get(noun)
    if (buckets === undefined) {
      buckets = new Map(indexList[noun].map((index) => [index.name, new Map()]))
      for (const { record } of changes.values()) addTo(buckets, noun, record)
      this.buckets.set(noun, buckets)
    }
    return buckets
  }
}

function addTo(buckets: Buckets, noun: Noun, record: AnyRecord | null): void {
  if (record === null) return
  for (const index of indexList[noun]) {
    const key = index.key(record)
    const byKey = buckets.get(index.name)
    if (key === null || byKey === undefined) continue
    let bucket = byKey.get(key)
    if (bucket === undefined) byKey.set(key, (bucket = new Map()))
    bucket.set(record.id, record)
  }
}

function removeFrom(buckets: Buckets, noun: Noun, record: AnyRecord | null | undefined): void {
  if (record === null || record === undefined) return
  for (const index of indexList[noun]) {
    const key = index.key(record)
    const byKey = buckets.get(index.name)
    const bucket = key === null ? undefined : byKey?.get(key)
    if (key === null || bucket === undefined) continue
    bucket.delete(record.id)
    if (bucket.size === 0) byKey?.delete(key)
  }
}
