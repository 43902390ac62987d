import type { Noun } from '../records.ts'
import { type AnyRecord, type Change, type Id, indexList, type Key } from './tables.ts'

/** What a layer lies upon: the durable tables, or another layer. */
export interface Base {
  get(noun: Noun, id: Id): AnyRecord | undefined
  find(noun: Noun, index: string, key: Key): AnyRecord[]
}

/** Changes that lie over a base without touching it: those of one transaction, or all that are not yet durable. */
export class Layer implements Base {
  private readonly base: Base
  private readonly changes = new Map<Noun, Map<Id, Change>>()
  private readonly keys = new Map<string, Map<Key, Map<Id, AnyRecord>>>()

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
    const ours = this.keys.get(`${noun}.${index}`)?.get(key)
    if (ours === undefined) return found
    return [...found, ...ours.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  set(change: Change): void {
    this.drop(change.noun, change.id)
    let changes = this.changes.get(change.noun)
    if (changes === undefined) this.changes.set(change.noun, (changes = new Map()))
    changes.set(change.id, change)
    if (change.record === null) return
    for (const index of indexList[change.noun]) {
      const key = index.key(change.record)
      if (key !== null) this.bucket(`${change.noun}.${index.name}`, key).set(change.id, change.record)
    }
  }

  /** Forgets a change that the base has by now, unless a later one has taken its place. */
  settle(change: Change): void {
    if (this.changes.get(change.noun)?.get(change.id) === change) this.drop(change.noun, change.id)
  }

  list(): Change[] {
    return [...this.changes.values()].flatMap((changes) => [...changes.values()])
  }

  private drop(noun: Noun, id: Id): void {
    const before = this.changes.get(noun)?.get(id)
    this.changes.get(noun)?.delete(id)
    if (before === undefined || before.record === null) return
    for (const index of indexList[noun]) {
      const key = index.key(before.record)
      const keys = this.keys.get(`${noun}.${index.name}`)
      const bucket = key === null ? undefined : keys?.get(key)
      if (key === null || bucket === undefined) continue
      bucket.delete(id)
      if (bucket.size === 0) keys?.delete(key)
    }
  }

  private bucket(index: string, key: Key): Map<Id, AnyRecord> {
    let keys = this.keys.get(index)
    if (keys === undefined) this.keys.set(index, (keys = new Map()))
    let bucket = keys.get(key)
    if (bucket === undefined) keys.set(key, (bucket = new Map()))
    return bucket
  }
}
