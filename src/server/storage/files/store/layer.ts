import { orderOf } from '../../ordered-records.ts'
import { type AnyRecord, type Id, indexList, type Key, type Noun } from '../../records/records.ts'
import { type AnyFound, type AnyQuery, type Change, conditionsOf, windowOf } from '../../tables.ts'

/** Base of a layer: the durable tables, or another layer. */
export interface Base {
  get(noun: Noun, id: Id): AnyRecord | undefined
  find(noun: Noun, index: string, key: Key): AnyRecord[]
  query(noun: Noun, query: AnyQuery): AnyFound
}

type Buckets = Map<string, Map<Key, Map<Id, AnyRecord>>>

/** Changes on top of an untouched base: those of one transaction, or all changes that are not durable yet. */
export class Layer implements Base {
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
