import type { NamedQuery, Page, PageQuery } from '../../core/protocol/http/common.ts'
import type { Noun, Records } from '../seams/records.ts'
import type { Store } from '../seams/store.ts'

const defaultSize = 20

/** The `data` of a list (contract §1). A page past the end is empty. */
export function pageOf<T>(content: T[], total: number, query: PageQuery): Page<T> {
  const { page = 0, size = defaultSize } = query
  return { content, page, size, totalElements: total, totalPages: Math.ceil(total / size) }
}

/** A page of a whole noun: the store finds it without reading the rest. */
export function storePage<N extends Noun>(
  store: Store,
  noun: N,
  query: PageQuery,
  order: 'asc' | 'desc' = 'asc',
): Promise<{ items: Readonly<Records[N]>[]; total: number }> {
  const { page = 0, size = defaultSize } = query
  return store.page(noun, { offset: page * size, limit: size, order })
}

/** A page of what a filter left. */
export function slicePage<T>(items: readonly T[], query: PageQuery): { items: T[]; total: number } {
  const { page = 0, size = defaultSize } = query
  return { items: items.slice(page * size, (page + 1) * size), total: items.length }
}

/** Those of a list that have the name that is asked for, where one is: without regard to case, and need not be one only. */
export function havingName<T extends { name: string | null }>(
  items: readonly T[],
  { name }: NamedQuery,
): readonly T[] {
  const wanted = name?.toLowerCase()
  return wanted === undefined ? items : items.filter((item) => item.name?.toLowerCase() === wanted)
}
