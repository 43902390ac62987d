import { largestPage } from '../../core/protocol/bounds.ts'
import type { Page, PageQuery } from '../../core/protocol/http/common.ts'

/** First `limit` elements of a list as a page; the totals show how many were cut (contract §9). */
export function firstOf<T>(page: Page<T>, limit = Number.POSITIVE_INFINITY): Page<T> {
  const content = page.content.slice(0, limit)
  const size = content.length
  const totalPages = size === 0 ? 1 : Math.ceil(page.totalElements / size)
  return { content, page: 0, size, totalElements: page.totalElements, totalPages }
}

/** All pages of a list as one, or its first `limit` elements, in the order of the server. */
export async function allPages<T, Q extends object>(
  list: (query: Q & PageQuery) => Promise<Page<T>>,
  query: Q,
  limit = Number.POSITIVE_INFINITY,
): Promise<Page<T>> {
  const size = Math.min(largestPage, limit)
  const content: T[] = []
  let at: PageQuery = { page: 0 }
  for (let page = 1; ; page++) {
    const got = await list({ ...query, ...at, size })
    content.push(...got.content)
    // Older servers fill every page and send no `next`.
    const { next = page < got.totalPages ? page * size : null } = got
    if (next === null || got.content.length === 0 || content.length >= limit)
      return firstOf({ ...got, content }, limit)
    at = next === page * size ? { page } : { offset: next }
  }
}
