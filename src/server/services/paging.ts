import type { Page, PageQuery } from '../../core/protocol/http/common.ts'
import type { Noun } from '../seams/records.ts'
import type { Found, Query, Store } from '../seams/store.ts'

const defaultSize = 20

/** The `data` of a list (contract §1). A page past the end is empty. */
export function pageOf<T>(content: T[], total: number, query: PageQuery): Page<T> {
  const { page = 0, size = defaultSize } = query
  return { content, page, size, totalElements: total, totalPages: Math.ceil(total / size) }
}

/** The `data` of a list of what the store finds, as `show` has it. */
export async function storePage<N extends Noun, T>(
  store: Store,
  noun: N,
  query: PageQuery,
  sought: Pick<Query<N>, 'where' | 'order'>,
  show: (items: Found<N>['items']) => T[] | Promise<T[]>,
): Promise<Page<T>> {
  const { page = 0, size = defaultSize } = query
  const { items, total } = await store.query(noun, { ...sought, offset: page * size, limit: size })
  return pageOf(await show(items), total, query)
}

/** The part of what is in memory that a page shows. */
export function slicePage<T>(items: readonly T[], { page = 0, size = defaultSize }: PageQuery): T[] {
  return items.slice(page * size, (page + 1) * size)
}
