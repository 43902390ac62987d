type Id = string | number

/** Records that are late or gone are merged in at the next read, and at the latest when they are this many. */
const maxUnsettled = 1024

/**
 * Records in ascending order of id. Those that come in order, as ids do, are appended at once; the others wait
 * for the next read, so that churn costs no search through an array.
 */
export class OrderedRecords<R extends { id: Id }> {
  private sorted: R[]
  private readonly late = new Map<Id, R>()
  private readonly gone = new Set<Id>()

  /** `sorted`: the first ones, in ascending order of id. */
  constructor(sorted: R[] = []) {
    this.sorted = sorted
  }

  put(record: R): void {
    const { id } = record
    const last = this.sorted.at(-1)
    if (last === undefined || id > last.id) {
      this.sorted.push(record)
      return
    }
    const place = this.search(id)
    if (this.sorted[place]?.id === id) {
      this.sorted[place] = record
      this.gone.delete(id)
    } else {
      this.late.set(id, record)
      this.settleIfMany()
    }
  }

  remove(id: Id): void {
    if (this.late.delete(id)) return
    if (this.sorted.at(-1)?.id === id) {
      this.sorted.pop()
      this.gone.delete(id)
    } else if (this.sorted[this.search(id)]?.id === id) {
      this.gone.add(id)
      this.settleIfMany()
    }
  }

  get size(): number {
    return this.sorted.length - this.gone.size + this.late.size
  }

  /** The records from place `start` up to `end`, as an array of the caller's own. */
  slice(start = 0, end?: number): R[] {
    this.settle()
    return this.sorted.slice(start, end)
  }

  /** First place whose id is not below this one. */
  private search(id: Id): number {
    let low = 0
    let high = this.sorted.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const found = this.sorted[middle]
      if (found !== undefined && found.id < id) low = middle + 1
      else high = middle
    }
    return low
  }

  private settleIfMany(): void {
    const unsettled = this.late.size + this.gone.size
    if (unsettled > maxUnsettled && unsettled > this.sorted.length / 2) this.settle()
  }

  private settle(): void {
    if (this.late.size === 0 && this.gone.size === 0) return
    const kept =
      this.gone.size === 0 ? this.sorted : this.sorted.filter((record) => !this.gone.has(record.id))
    if (this.late.size > 0) {
      kept.push(...this.late.values())
      kept.sort((a, b) => (a.id < b.id ? -1 : 1))
    }
    this.sorted = kept
    this.late.clear()
    this.gone.clear()
  }
}
