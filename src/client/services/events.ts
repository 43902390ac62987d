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

/** An event of the server (contract §3 `/api/events`); `id` is the position of the stream after it. */
export type FleetEvent = { readonly id: string } & (
  | ({ readonly type: 'host' } & HostEvent)
  | ({ readonly type: 'task' } & TaskEvent)
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
