import { invalid } from '../../core/errors.ts'
import type { Page, PageQuery } from '../../core/protocol/http/common.ts'
import type { Found, Query, Store } from './ports/store.ts'
import type { Noun } from './records/records.ts'

const defaultSize = 20
/** Characters of JSON: a page ends before it exceeds them, but has at least one record (contract §1). */
export const largestPageText = 8 * 1024 * 1024

/** Offset and limit of a page. Errors: `invalid` for both `page` and `offset`. */
export function windowOf({ page, offset, size = defaultSize }: PageQuery): { offset: number; limit: number } {
  if (page && offset !== undefined)
    throw invalid([{ field: 'offset', message: 'give page or offset, not both' }])
  return { offset: offset ?? (page ?? 0) * size, limit: size }
}

function fitting<T>(records: T[]): T[] {
  let room = largestPageText
  const end = records.findIndex((record, at) => (room -= JSON.stringify(record).length) < 0 && at > 0)
  return end === -1 ? records : records.slice(0, end)
}

/** `data` of a list (contract §1). A page past the end is empty. */
export function pageOf<T>(records: T[], total: number, query: PageQuery): Page<T> {
  const { offset, limit: size } = windowOf(query)
  const content = fitting(records)
  const end = offset + content.length
  return {
    content,
    page: Math.floor(offset / size),
    size,
    totalElements: total,
    totalPages: Math.ceil(total / size),
    next: content.length > 0 && end < total ? end : null,
  }
}

/** `data` of a list of records of the store, converted by `toApi`. */
export async function storePage<N extends Noun, T>(
  store: Store,
  noun: N,
  query: PageQuery,
  sought: Pick<Query<N>, 'where' | 'order'>,
  toApi: (items: Found<N>['items']) => T[] | Promise<T[]>,
): Promise<Page<T>> {
  const { items, total } = await store.query(noun, {
    ...sought,
    ...windowOf(query),
    limitText: largestPageText,
  })
  return pageOf(await toApi(items), total, query)
}

export function slicePage<T>(items: readonly T[], query: PageQuery): T[] {
  const { offset, limit } = windowOf(query)
  return items.slice(offset, offset + limit)
}
