import { RsmError } from '../core/errors.ts'
import type {
  ClusterEvent,
  EventType,
  HostEvent,
  ReadyEvent,
  ResetEvent,
  TaskEvent as TaskChange,
} from '../core/protocol/http/events.ts'
import type { LogEntry, LogQuery } from '../core/protocol/http/logs.ts'
import type { Task, TaskSummary } from '../core/protocol/http/tasks.ts'
import type { TaskResult } from '../core/tasks/task.ts'
import type { FollowOptions, ServerEvent } from '../net/event-stream.ts'
import { type Api, eventObject, withQuery } from './http/api.ts'

/** Events of a followed task (contract §5). `end` has the results if the server sent them. */
export type TaskEvent =
  | { readonly type: 'output'; readonly entry: LogEntry }
  | { readonly type: 'host'; readonly result: TaskResult }
  | { readonly type: 'task'; readonly task: Partial<TaskSummary> }
  | { readonly type: 'end'; readonly task: Partial<Task> }

export interface WatchOptions extends FollowOptions {
  /** Cursor, host, stream and tail: where the stream begins and what it contains. */
  readonly query?: LogQuery
}

/** Name of each event's value, and the fields that it must have. */
const kinds: Readonly<Record<string, readonly [name: string, fields: readonly string[]]>> = {
  output: ['entry', ['id', 'hostname', 'stream', 'data']],
  host: ['result', ['hostId', 'hostname', 'status']],
  task: ['task', []],
  end: ['task', []],
}

function parse(url: string, { event: type, data }: ServerEvent): TaskEvent | undefined {
  const [name, fields] = kinds[type] ?? []
  return name === undefined ? undefined : ({ type, [name]: eventObject(url, data, fields) } as TaskEvent)
}

/**
 * Follows a task to its end. Resumes after the last entry seen, so that nothing is missed or repeated; if that fails
 * for `retryFor`, rejects with `unreachable` and the taskId.
 */
export async function* watchTask(
  api: Api,
  taskId: string,
  options: WatchOptions = {},
): AsyncGenerator<TaskEvent> {
  const path = (resumed: boolean) => {
    // A cursor replaces `tail`: after a cut only new entries matter.
    const begin = resumed ? { tail: undefined, after: undefined } : {}
    const query = { ...options.query, follow: true, ...begin }
    return withQuery(`/api/tasks/${encodeURIComponent(taskId)}/logs`, query)
  }
  const givenUp = (cut: RsmError) =>
    new RsmError('unreachable', `${cut.message}; task ${taskId} keeps running without it`, {
      hint: `follow it again: rsm logs -f ${taskId}`,
      cause: cut,
    })
  let last: number | undefined
  for await (const raw of api.events(path, options, givenUp)) {
    const event = parse(api.url, raw)
    if (event === undefined) continue
    if (event.type === 'output') {
      if (last !== undefined && event.entry.id <= last) continue
      last = event.entry.id
    }
    yield event
    if (event.type === 'end') return
  }
}

/** An event of the server (contract §3 `/api/events`); `id` is the position of the stream after it. */
export type FleetEvent = { readonly id: string } & (
  | ({ readonly type: 'host' } & HostEvent)
  | ({ readonly type: 'task' } & TaskChange)
  | ({ readonly type: 'cluster' } & ClusterEvent)
  /** The stream begins, or resumes after a cut. */
  | ({ readonly type: 'ready' } & ReadyEvent)
  /** Events after the last id are lost: reload what you show. */
  | ({ readonly type: 'reset' } & ResetEvent)
)

export interface EventsOptions extends FollowOptions {
  /** Default: all. */
  readonly types?: readonly EventType[]
  readonly after?: string | undefined
}

const known = new Set(['host', 'task', 'cluster', 'ready', 'reset'])

/** Follows the fleet without end; resumes after a cut. Errors: `unreachable` once that fails for `retryFor`. */
export async function* watchEvents(api: Api, options: EventsOptions = {}): AsyncGenerator<FleetEvent> {
  const { types, after } = options
  const path = (resumed: boolean) =>
    withQuery('/api/events', { type: types, after: resumed ? undefined : after })
  let last = after
  const givenUp = (cut: RsmError) =>
    new RsmError('unreachable', cut.message, {
      hint: last === undefined ? 'follow again: rsm events' : `follow again: rsm events --after ${last}`,
      cause: cut,
    })
  for await (const { event, data, id } of api.events(path, options, givenUp)) {
    if (!known.has(event) || id === undefined) continue
    last = id
    yield { type: event, id, ...eventObject(api.url, data) } as FleetEvent
  }
}
