import { RsmError } from '../../core/errors.ts'
import type {
  ClusterEvent,
  EventType,
  HostEvent,
  ReadyEvent,
  ResetEvent,
  TaskEvent,
} from '../../core/protocol/http/events.ts'
import type { FollowOptions } from '../../net/event-stream.ts'
import { type Api, eventObject, withQuery } from '../http/api.ts'

/** What the server tells (contract §3 `/api/events`); `id` is where the stream stands after it. */
export type FleetEvent = { readonly id: string } & (
  | ({ readonly type: 'host' } & HostEvent)
  | ({ readonly type: 'task' } & TaskEvent)
  | ({ readonly type: 'cluster' } & ClusterEvent)
  /** A stream begins, or goes on after a cut. */
  | ({ readonly type: 'ready' } & ReadyEvent)
  /** What came after the last id is not known any more: read anew what you show. */
  | ({ readonly type: 'reset' } & ResetEvent)
)

export interface EventsOptions extends FollowOptions {
  /** By default all. */
  readonly types?: readonly EventType[]
  /** The id of the last event seen. */
  readonly after?: string | undefined
}

const known = new Set(['host', 'task', 'cluster', 'ready', 'reset'])

/**
 * Follows the changes of the fleet, without end. A cut is taken up again behind the last event seen; when that fails for
 * `retryFor`, rejects with `unreachable`.
 */
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
