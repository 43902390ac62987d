import { type AnyRecord, type Noun, orders } from './records/records.ts'

type Id = string | number
export type Compare<R> = (a: R, b: R) => number

export const byId: Compare<{ id: Id }> = (a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

/** Unsettled records are merged at the next read, or past this and half as many as sorted ones. */
const maxUnsettled = 1024

/** Records that wait to be merged. Most lists, such as those of a unique index, never have any. */
interface Unsettled<R> {
  late: Map<Id, R>
  gone: Set<Id>
}

/**
 * Records in ascending order of id, or in another order without equal records. Records that come in order, as
 * new ids do, are appended at once; others wait for the next read, so that churn never shifts the array.
 */
export class OrderedRecords<R extends { id: Id }> {
  private sorted: R[] = []
  private unsettled: Unsettled<R> | null = null
  private readonly compare: Compare<R>

  constructor(compare: Compare<R> = byId) {
    this.compare = compare
  }

  /** If the order is not by id, remove a record before it changes its position. */
  put(record: R): void {
    const { id } = record
    const last = this.sorted.at(-1)
    const waits = this.unsettled?.late.has(id) || this.unsettled?.gone.has(id)
    if (!waits && (last === undefined || this.compare(record, last) > 0)) {
      this.sorted.push(record)
      return
    }
    const place = this.search(record)
    if (this.sorted[place]?.id === id) {
      this.sorted[place] = record
      this.unsettled?.gone.delete(id)
    } else this.later(({ late }) => late.set(id, record))
  }

  remove(record: R): void {
    const { id } = record
    if (this.unsettled?.late.delete(id)) return
    if (this.sorted.at(-1)?.id === id) {
      this.sorted.pop()
      this.unsettled?.gone.delete(id)
    } else if (this.sorted[this.search(record)]?.id === id) this.later(({ gone }) => gone.add(id))
  }

  get size(): number {
    const { late, gone } = this.unsettled ?? {}
    return this.sorted.length - (gone?.size ?? 0) + (late?.size ?? 0)
  }

  /** Records from index `start` up to `end`, in a new array. */
  slice(start = 0, end?: number): R[] {
    this.settle()
    return this.sorted.slice(start, end)
  }

  /** First index whose record is not below this one. */
  private search(record: R): number {
    let low = 0
    let high = this.sorted.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const found = this.sorted[middle]
      if (found !== undefined && this.compare(found, record) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  private later(note: (unsettled: Unsettled<R>) => void): void {
    const unsettled = (this.unsettled ??= { late: new Map(), gone: new Set() })
    note(unsettled)
    const count = unsettled.late.size + unsettled.gone.size
    if (count > maxUnsettled && count > this.sorted.length / 2) this.settle()
  }

  private settle(): void {
    if (this.unsettled === null) return
    const { late, gone } = this.unsettled
    if (gone.size > 0) this.sorted = this.sorted.filter((record) => !gone.has(record.id))
    if (late.size > 0) {
      this.sorted.push(...late.values())
      this.sorted.sort(this.compare)
    }
    this.unsettled = null
  }
}

/** Comparison for an order of a noun: by id unless records.ts defines it. */
export function orderOf(noun: Noun, order: string): Compare<AnyRecord> {
  const named: Partial<Record<string, Record<string, { compare: unknown }>>> = orders
  return (named[noun]?.[order]?.compare as Compare<AnyRecord> | undefined) ?? byId
}
