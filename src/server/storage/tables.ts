import { hasId } from '../../core/tasks/id-set.ts'
import { byId, OrderedRecords, orderOf } from './ordered-records.ts'
import type { Found, Query, Where } from './ports/store.ts'
import {
  type AnyRecord,
  type Id,
  type Index,
  indexList,
  type Key,
  type Noun,
  nouns,
} from './records/records.ts'

/** One record put (`record`) or removed (null). */
export interface Change {
  readonly noun: Noun
  readonly id: Id
  readonly record: AnyRecord | null
}

/** All records in memory: the model that lowdb holds, equal to the disk up to `sequence`. */
export class Tables {
  /** Sequence of the last transaction in it. */
  sequence = 0
  /** Highest id ever given out, by noun. */
  readonly lastIds: Partial<Record<Noun, number>> = {}
  private readonly tables = Object.fromEntries(nouns.map((noun) => [noun, new Table(noun)])) as Record<
    Noun,
    Table
  >

  apply({ noun, id, record }: Change): void {
    this.tables[noun].apply(id, record)
    if (typeof id === 'number') this.raiseId(noun, id)
  }

  /** Ensures that ids up to this one are not given out again. */
  raiseId(noun: Noun, id: number): void {
    this.lastIds[noun] = Math.max(this.lastIds[noun] ?? 0, id)
  }

  get(noun: Noun, id: Id): AnyRecord | undefined {
    return this.tables[noun].records.get(id)
  }

  find(noun: Noun, index: string, key: Key): AnyRecord[] {
    const found = this.tables[noun].buckets.get(index)?.get(key)
    return found instanceof OrderedRecords ? found.slice() : found === undefined ? [] : [found]
  }

  query(noun: Noun, query: AnyQuery): AnyFound {
    return this.tables[noun].query(query)
  }

  count(noun: Noun): number {
    return this.tables[noun].records.size
  }

  slice(noun: Noun): AnyRecord[] {
    return this.tables[noun].ordered.slice()
  }
}

/** Records at one transaction. */
export type TablesView = Pick<Tables, 'slice' | 'lastIds' | 'sequence'>

class Table {
  readonly records = new Map<Id, AnyRecord>()
  readonly ordered = new OrderedRecords<AnyRecord>()
  /** By index and key; unique indexes hold the record itself, as buckets would take more memory. */
  readonly buckets: Map<string, Map<Key, OrderedRecords<AnyRecord> | AnyRecord>>
  /** Records in orders other than by id, each built on first use. */
  private readonly orders = new Map<string, OrderedRecords<AnyRecord>>()
  private readonly noun: Noun
  private readonly indexes: readonly Index[]

  constructor(noun: Noun) {
    this.noun = noun
    this.indexes = indexList[noun]
    this.buckets = new Map(this.indexes.map((index) => [index.name, new Map()]))
  }

  apply(id: Id, record: AnyRecord | null): void {
    const before = this.records.get(id)
    for (const index of this.indexes) this.move(index, before, record)
    for (const [name, ordered] of this.orders) {
      const isMoved = before && record && orderOf(this.noun, name)(before, record) !== 0
      if (before && (isMoved || !record)) ordered.remove(before)
      if (record) ordered.put(record)
    }
    if (record !== null) {
      this.records.set(id, record)
      this.ordered.put(record)
    } else if (before !== undefined) {
      this.records.delete(id)
      this.ordered.remove(before)
    }
  }

  query(query: AnyQuery): AnyFound {
    const { where = {}, order = 'asc' } = query
    const conditions = conditionsOf(this.noun, where)
    const whole = [this.inOrder(order)]
    let sets = whole
    let rest = conditions
    // Read the smallest index, and test its records for all other conditions.
    for (const condition of conditions) {
      const found = this.indexed(condition)
      if (found === null || sizeOf(found) > sizeOf(sets)) continue
      sets = found
      rest = conditions.filter((other) => other !== condition)
    }
    const compare = orderOf(this.noun, order)
    const isInOrder = sets === whole || compare === byId
    if (rest.length === 0 && isInOrder) return firstOf(sets, query)
    const matching = sets
      .flatMap((set) => set.slice())
      .filter((record) => rest.every(({ test }) => test(record)))
    return windowOf(isInOrder && sets.length < 2 ? matching : matching.sort(compare), query)
  }

  private inOrder(order: string): OrderedRecords<AnyRecord> {
    const compare = orderOf(this.noun, order)
    if (compare === byId) return this.ordered
    let ordered = this.orders.get(order)
    if (ordered === undefined) {
      ordered = new OrderedRecords(compare)
      for (const record of this.records.values()) ordered.put(record)
      this.orders.set(order, ordered)
    }
    return ordered
  }

  /** Records that meet a condition, in sets ordered by id; null without a matching index. */
  private indexed(condition: Condition): OrderedRecords<AnyRecord>[] | null {
    if (condition.kind === 'ids') {
      const found = new OrderedRecords<AnyRecord>()
      for (const id of condition.ids) {
        const record = this.records.get(id)
        if (record) found.put(record)
      }
      return [found]
    }
    if (condition.kind !== 'equals' && condition.kind !== 'has') return null
    const buckets = condition.index && this.buckets.get(condition.index.name)
    if (!buckets) return null
    if (condition.kind === 'has')
      return [...buckets].flatMap(([key, bucket]) =>
        condition.members.every((member) => hasMember(key, member)) ? [asList(bucket)] : [],
      )
    const { value } = condition
    if (value === null || typeof value === 'boolean') return null
    const bucket = buckets.get(value)
    return bucket ? [asList(bucket)] : []
  }

  private move(index: Index, before: AnyRecord | undefined, record: AnyRecord | null): void {
    const buckets = this.buckets.get(index.name)
    const old = before === undefined ? null : index.key(before)
    const key = record === null ? null : index.key(record)
    if (buckets === undefined || (old === null && key === null)) return
    if (before !== undefined && old !== null && old !== key) removeFrom(buckets, old, before)
    if (key === null || record === null) return
    const bucket = buckets.get(key)
    if (index.unique) buckets.set(key, record)
    else if (bucket instanceof OrderedRecords) bucket.put(record)
    else buckets.set(key, asList(record))
  }
}

function asList(item: OrderedRecords<AnyRecord> | AnyRecord): OrderedRecords<AnyRecord> {
  if (item instanceof OrderedRecords) return item
  const list = new OrderedRecords<AnyRecord>()
  list.put(item)
  return list
}

function removeFrom(
  buckets: Map<Key, OrderedRecords<AnyRecord> | AnyRecord>,
  key: Key,
  record: AnyRecord,
): void {
  const found = buckets.get(key)
  if (found instanceof OrderedRecords) {
    found.remove(record)
    if (found.size === 0) buckets.delete(key)
    // Another record of the same transaction may have taken the key already.
  } else if (found?.id === record.id) buckets.delete(key)
}

const sizeOf = (sets: readonly OrderedRecords<AnyRecord>[]) => sets.reduce((sum, { size }) => sum + size, 0)

/** Part that a query shows of sets in its order; reads of each only as much as it may need. */
function firstOf(sets: readonly OrderedRecords<AnyRecord>[], query: AnyQuery): AnyFound {
  const { order, offset = 0, limit = Number.POSITIVE_INFINITY } = query
  const skipped = sets.length === 1 ? offset : 0
  const read = sets.flatMap((set) =>
    order === 'desc'
      ? set.slice(Math.max(0, set.size - offset - limit), Math.max(0, set.size - skipped))
      : set.slice(skipped, offset + limit),
  )
  if (sets.length > 1) read.sort(byId)
  const { items } = windowOf(read, { ...query, offset: offset - skipped })
  return { items, total: sizeOf(sets) }
}

/**
 * Freezes a record and everything in it, because readers share it with the store. A change in place would be
 * visible to others but never reach the disk. Recursion is safe: bodies nest at most 32 deep (reliability
 * "Facts that bite").
 */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const item of Object.values(value)) freeze(item)
  return Object.freeze(value)
}

/** Query and its result, without the type of the noun. */
export type AnyQuery = Omit<Query<Noun>, 'where' | 'order'> & { where?: Where<never>; order?: string }
export type AnyFound = Found<Noun>

type Value = string | number | boolean | null
type Member = string | number | readonly [string, string]

/** One condition of a `where`; `index`: the one with the field's name. */
type Test = (record: AnyRecord) => boolean
type Condition =
  | { kind: 'ids'; test: Test; ids: ReadonlySet<Id> }
  | { kind: 'equals'; test: Test; index: Index | undefined; value: Value }
  | { kind: 'has'; test: Test; index: Index | undefined; members: readonly Member[] }
  | { kind: 'contains' | 'before'; test: Test }

const valueOf = (record: AnyRecord, field: string): unknown =>
  (record as unknown as Record<string, unknown>)[field]

/** Whether a list, a map or a folded set has this member. */
function hasMember(collection: unknown, member: Member): boolean {
  if (typeof collection === 'string') return hasId(collection, Number(member))
  if (Array.isArray(collection)) return collection.includes(member)
  if (typeof collection !== 'object' || collection === null || !Array.isArray(member)) return false
  const [key, value] = member
  return Object.hasOwn(collection, key) && (collection as Record<string, unknown>)[key] === value
}

export function conditionsOf(noun: Noun, where: Where<never>): Condition[] {
  const { ids, equals = {}, contains, before = {}, has = {} } = where as Where<Noun>
  const conditions: Condition[] = []
  if (ids) {
    const set = new Set<Id>(ids)
    conditions.push({ kind: 'ids', ids: set, test: ({ id }) => set.has(id) })
  }
  const indexOf = (field: string) => indexList[noun].find(({ name }) => name === field)
  for (const [field, value] of Object.entries<Value | undefined>(equals)) {
    if (value === undefined) continue
    const index = indexOf(field)
    const test = (record: AnyRecord) =>
      (index ? index.key(record) : (valueOf(record, field) ?? null)) === value
    conditions.push({ kind: 'equals', index, value, test })
  }
  for (const [field, members] of Object.entries(has) as [string, readonly Member[] | undefined][]) {
    if (!members) continue
    const test = (record: AnyRecord) => members.every((member) => hasMember(valueOf(record, field), member))
    conditions.push({ kind: 'has', index: indexOf(field), members, test })
  }
  for (const [field, time] of Object.entries<string | undefined>(before)) {
    const isBefore = (value: unknown) => typeof value === 'string' && time !== undefined && value < time
    if (time !== undefined)
      conditions.push({ kind: 'before', test: (record) => isBefore(valueOf(record, field)) })
  }
  const wanted = contains?.text?.toLowerCase()
  if (contains && wanted) {
    const matches = (value: unknown) => typeof value === 'string' && value.toLowerCase().includes(wanted)
    const test = (record: AnyRecord) => contains.fields.some((field) => matches(valueOf(record, field)))
    conditions.push({ kind: 'contains', test })
  }
  return conditions
}

export function windowOf(all: AnyRecord[], { order, offset = 0, limit = all.length }: AnyQuery): AnyFound {
  const items = order === 'desc' ? all.toReversed() : all
  return { items: items.slice(offset, offset + limit), total: all.length }
}
