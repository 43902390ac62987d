import {
  ClusterEvent,
  EventQuery,
  eventTypes,
  HostEvent,
  ReadyEvent,
  ResetEvent,
  TaskEvent,
} from '../../core/protocol/http/events.ts'
import type { AppInstance } from '../http/app.ts'
import { operation } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'
import { sendEvents } from './event-stream.ts'

export function eventRoutes(app: AppInstance, { events, context }: RouteDependencies): void {
  app.get(
    '/api/events',
    operation({
      id: 'followEvents',
      tag: 'events',
      summary: 'Follow changes of hosts, tasks and clusters',
      allow: { users: 'read' },
      query: EventQuery,
      media: {
        'text/event-stream': {
          holds:
            'First `ready` {id}; then `host`, `task` and `cluster`: {change: created|updated|removed, at, host|task|cluster: ' +
            'the read representation, or only {id} if removed}. `reset` {reason: RESTARTED|BEHIND|UNKNOWN, id}: events ' +
            'after the requested id are no longer known; read everything again.',
          events: {
            ready: ReadyEvent,
            host: HostEvent,
            task: TaskEvent,
            cluster: ClusterEvent,
            reset: ResetEvent,
          },
          example: 'event: ready\nid: 3fa9c1d20b7e-41\ndata: {"id":"3fa9c1d20b7e-41"}\n\n',
        },
      },
      headers: {
        'Last-Event-ID':
          'Id of the last event received; the stream continues after it. Takes precedence over `after`.',
      },
    }),
    (request, reply) => {
      const { type, after } = request.query
      const lastId = request.headers['last-event-id']
      const listener = events.listen({
        after: typeof lastId === 'string' && lastId !== '' ? lastId : after,
        types: new Set(type ?? eventTypes),
      })
      return sendEvents(
        request,
        reply,
        context,
        (signal) => listener.batches(signal),
        () => listener.comment(),
      )
    },
  )
}
