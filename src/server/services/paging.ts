import type { Page, PageQuery } from '../../core/protocol/http/common.ts'
import type { Noun } from '../seams/records.ts'
import type { Found, Query, Store } from '../seams/store.ts'

const defaultSize = 20

/** The `data` of a list (contract §1). A page past the end is empty. */
export function pageOf<T>(content: T[], total: number, query: PageQuery): Page<T> {
  const { page = 0, size = defaultSize } = query
  return { content, page, size, totalElements: total, totalPages: Math.ceil(total / size) }
}

/** A page of what the store finds. */
export function storePage<N extends Noun>(
  store: Store,
  noun: N,
  { page = 0, size = defaultSize }: PageQuery,
  query: Pick<Query<N>, 'where' | 'order'> = {},
): Promise<Found<N>> {
  return store.query(noun, { ...query, offset: page * size, limit: size })
}

/** A page of what is in memory. */
export function slicePage<T>(items: readonly T[], query: PageQuery): { items: T[]; total: number } {
  const { page = 0, size = defaultSize } = query
  return { items: items.slice(page * size, (page + 1) * size), total: items.length }
}
