import { indexes, type Noun, nouns, type Records } from '../../seams/records.ts'
import { OrderedRecords } from './ordered-records.ts'

export type AnyRecord = Records[Noun]
export type Id = string | number
export type Key = string | number

interface Index {
  name: string
  unique: boolean
  key(record: AnyRecord): Key | null
}

/** The indexes of a noun, seen without the noun's type: a record is only ever given to the indexes of its own noun. */
export const indexList: Record<Noun, readonly Index[]> = Object.fromEntries(
  nouns.map((noun) => [
    noun,
    Object.entries(indexes[noun]).map(([name, index]) => ({ name, ...(index as Omit<Index, 'name'>) })),
  ]),
) as unknown as Record<Noun, readonly Index[]>

/** One record put (`record`) or removed (null). */
export interface Change {
  readonly noun: Noun
  readonly id: Id
  readonly record: AnyRecord | null
}

class Table {
  /** How many changes there have been. */
  revision = 0
  readonly records = new Map<Id, AnyRecord>()
  readonly ordered = new OrderedRecords<AnyRecord>()
  /** By index and key: the record of a unique index itself, as a bucket for each would take more room than the record. */
  readonly buckets: Map<string, Map<Key, OrderedRecords<AnyRecord> | AnyRecord>>
  private readonly indexes: readonly Index[]

  constructor(noun: Noun) {
    this.indexes = indexList[noun]
    this.buckets = new Map(this.indexes.map((index) => [index.name, new Map()]))
  }

  apply(id: Id, record: AnyRecord | null): void {
    this.revision++
    const before = this.records.get(id)
    for (const index of this.indexes) this.move(index, id, before, record)
    if (record !== null) {
      this.records.set(id, record)
      this.ordered.put(record)
    } else if (before !== undefined) {
      this.records.delete(id)
      this.ordered.remove(id)
    }
  }

  private move(index: Index, id: Id, before: AnyRecord | undefined, record: AnyRecord | null): void {
    const buckets = this.buckets.get(index.name)
    const old = before === undefined ? null : index.key(before)
    const key = record === null ? null : index.key(record)
    if (buckets === undefined || (old === null && key === null)) return
    if (old !== null && old !== key) removeFrom(buckets, old, id)
    if (key === null || record === null) return
    if (index.unique) buckets.set(key, record)
    else {
      const bucket = buckets.get(key)
      if (bucket instanceof OrderedRecords) bucket.put(record)
      else buckets.set(key, new OrderedRecords([record]))
    }
  }
}

function removeFrom(buckets: Map<Key, OrderedRecords<AnyRecord> | AnyRecord>, key: Key, id: Id): void {
  const found = buckets.get(key)
  if (found instanceof OrderedRecords) {
    found.remove(id)
    if (found.size === 0) buckets.delete(key)
    // Another record of the same transaction may have taken the key already.
  } else if (found?.id === id) buckets.delete(key)
}

/** All records in memory: the model that lowdb holds, and exactly what the disk holds up to `sequence`. */
export class Tables {
  /** The last transaction that is in here. */
  sequence = 0
  /** The highest id ever given out, by noun. */
  readonly lastIds: Partial<Record<Noun, number>> = {}
  private readonly tables = Object.fromEntries(nouns.map((noun) => [noun, new Table(noun)])) as Record<
    Noun,
    Table
  >

  apply({ noun, id, record }: Change): void {
    this.tables[noun].apply(id, record)
    if (typeof id === 'number') this.raiseId(noun, id)
  }

  /** No id at or below this one is given out again. */
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

  revision(noun: Noun): number {
    return this.tables[noun].revision
  }

  count(noun: Noun): number {
    return this.tables[noun].records.size
  }

  slice(noun: Noun, start?: number, end?: number): AnyRecord[] {
    return this.tables[noun].ordered.slice(start, end)
  }
}
