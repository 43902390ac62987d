import type { Page } from '../../core/protocol/http/common.ts'

const largestPage = 500

/**
 * All pages of a list as one, or its first `limit` elements; `totalElements` stays the server's count, so a caller can
 * say what was cut (contract §9).
 */
export async function allPages<T, Q extends object>(
  list: (query: Q & { page: number; size: number }) => Promise<Page<T>>,
  query: Q,
  limit = Number.POSITIVE_INFINITY,
): Promise<Page<T>> {
  const size = Math.min(largestPage, limit)
  const content: T[] = []
  for (let page = 0; ; page++) {
    const got = await list({ ...query, page, size })
    content.push(...got.content)
    if (page + 1 >= got.totalPages || got.content.length === 0 || content.length >= limit) {
      const kept = content.slice(0, limit)
      return { content: kept, page: 0, size: kept.length, totalElements: got.totalElements, totalPages: 1 }
    }
  }
}
