import { hasId } from '../../../core/tasks/id-set.ts'
import type { Found, Query, Where } from '../ports/store.ts'
import { type AnyRecord, type Id, type Index, indexList, type Noun } from '../records/records.ts'

/** Query and its result, without the type of the noun. */
export type AnyQuery = Omit<Query<Noun>, 'where' | 'order'> & { where?: Where<never>; order?: string }
export type AnyFound = Found<Noun>

type Value = string | number | boolean | null
type Member = string | number | readonly [string, string]

/** One condition of a `where`; `index`: the one with the field's name. */
type Test = (record: AnyRecord) => boolean
export type Condition =
  | { kind: 'ids'; test: Test; ids: ReadonlySet<Id> }
  | { kind: 'equals'; test: Test; index: Index | undefined; value: Value }
  | { kind: 'has'; test: Test; index: Index | undefined; members: readonly Member[] }
  | { kind: 'contains' | 'before'; test: Test }

const valueOf = (record: AnyRecord, field: string): unknown =>
  (record as unknown as Record<string, unknown>)[field]

/** Whether a list, a map or a folded set has this member. */
export function hasMember(collection: unknown, member: Member): boolean {
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
