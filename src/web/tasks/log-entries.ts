import type { LogEntry, LogPage } from '../../core/protocol/http/logs.ts'
import { call, withQuery } from '../api.ts'

const pageSize = 500

interface LogRange {
  hostId?: number | undefined
  /** The cursor behind which it begins. */
  after?: number
  signal: AbortSignal
}

/** What a log holds just now, page by page: the entries, and the cursor behind them. */
export async function* logPages(
  taskId: string,
  { hostId, after = 0, signal }: LogRange,
): AsyncGenerator<{ entries: readonly LogEntry[]; next: number }> {
  const path = `api/tasks/${encodeURIComponent(taskId)}/logs`
  for (;;) {
    const query = { hostId, after, size: pageSize }
    const { entries, next } = await call<LogPage>('GET', withQuery(path, query), { signal })
    if (entries.length === 0 && next === after) return
    yield { entries, next }
    after = next
  }
}
