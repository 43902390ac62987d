import { setTimeout as delay } from 'node:timers/promises'
import { RsmError } from '../core/errors.ts'
import type { LogEntry, LogQuery, Task, TaskResult, TaskSummary } from '../core/protocol/http/tasks.ts'
import { type Api, withQuery } from './api.ts'
import { type ServerEvent, SseParser } from './sse.ts'

/** What a followed task tells (contract §5). `end` carries the results where the server sent them. */
export type TaskEvent =
  | { readonly type: 'output'; readonly entry: LogEntry }
  | { readonly type: 'host'; readonly result: TaskResult }
  | { readonly type: 'task'; readonly task: Partial<TaskSummary> }
  | { readonly type: 'end'; readonly task: Partial<Task> }

export interface WatchOptions {
  /** Cursor, host, stream and tail: where the stream begins and what it holds. */
  readonly query?: LogQuery
  readonly signal?: AbortSignal
  /** Told when the connection is lost and taken up again. */
  readonly onCut?: (error: RsmError) => void
  /** How long a lost connection is taken up again, in milliseconds (contract §9: 5 minutes). */
  readonly retryFor?: number
  /** Without a byte for so long the connection counts as lost; comments come every 15 s (contract §5). */
  readonly silence?: number
}

const firstPause = 250
const longestPause = 5_000

/** Faults that waiting can mend; anything else (401, 404, 410) is final. */
function mendable(error: unknown): error is RsmError {
  return (
    error instanceof RsmError && ['unreachable', 'unavailable', 'internal', 'too_many'].includes(error.code)
  )
}

function parse(event: ServerEvent): TaskEvent | undefined {
  const value = JSON.parse(event.data) as never
  switch (event.event) {
    case 'output':
      return { type: 'output', entry: value }
    case 'host':
      return { type: 'host', result: value }
    case 'task':
      return { type: 'task', task: value }
    case 'end':
      return { type: 'end', task: value }
    default:
      return undefined
  }
}

async function* events(
  api: Api,
  path: string,
  headers: Record<string, string>,
  silence: number,
  signal?: AbortSignal,
): AsyncGenerator<ServerEvent> {
  const body = await api.stream(path, { accept: 'text/event-stream', ...headers }, signal)
  const quiet = setTimeout(() => body.destroy(new Error('no sign of life')), silence)
  quiet.unref()
  const parser = new SseParser()
  try {
    for await (const chunk of body) {
      quiet.refresh()
      yield* parser.push(chunk as Buffer)
    }
  } catch (error) {
    if (signal?.aborted === true || error instanceof RsmError) throw error
    throw new RsmError('unreachable', `lost the connection to ${api.url}`, { cause: error })
  } finally {
    clearTimeout(quiet)
    body.destroy()
  }
}

/**
 * Follows a task to its end. A cut is taken up again after the last entry seen, so nothing is missed and nothing comes
 * twice; when that fails for `retryFor`, rejects with `unreachable` and the taskId.
 */
export async function* watchTask(
  api: Api,
  taskId: string,
  options: WatchOptions = {},
): AsyncGenerator<TaskEvent> {
  const { retryFor = 300_000, silence = 45_000, signal } = options
  let last: number | undefined
  let failingSince: number | undefined
  let pause = firstPause
  for (;;) {
    // A cursor takes the place of `tail`: after a cut only what is new is wanted.
    const query = {
      ...options.query,
      follow: true,
      ...(last === undefined ? {} : { tail: undefined, after: undefined }),
    }
    const path = withQuery(`/api/tasks/${encodeURIComponent(taskId)}/logs`, query)
    const headers: Record<string, string> = last === undefined ? {} : { 'last-event-id': String(last) }
    let cut = new RsmError('unreachable', `lost the connection to ${api.url}`)
    try {
      for await (const raw of events(api, path, headers, silence, signal)) {
        failingSince = undefined
        pause = firstPause
        const event = parse(raw)
        if (event === undefined) continue
        if (event.type === 'output') {
          if (last !== undefined && event.entry.id <= last) continue
          last = event.entry.id
        }
        yield event
        if (event.type === 'end') return
      }
    } catch (error) {
      if (!mendable(error)) throw error
      cut = error
    }
    if (failingSince === undefined) {
      failingSince = performance.now()
      options.onCut?.(cut)
    }
    if (performance.now() - failingSince >= retryFor)
      throw new RsmError('unreachable', `${cut.message}; task ${taskId} goes on without it`, {
        hint: `follow it again: rsm logs -f ${taskId}`,
        cause: cut,
      })
    await delay(Math.min(pause, longestPause), undefined, signal === undefined ? {} : { signal })
    pause = Math.min(pause * 2, longestPause)
  }
}
