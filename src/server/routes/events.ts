import { once } from 'node:events'
import type { OutgoingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { longestTimer, pingInterval } from '../../core/protocol/bounds.ts'
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
import { userOf } from '../http/auth.ts'
import { operation } from '../http/operation.ts'
import type { Context } from '../services/context.ts'
import type { RouteDependencies } from './dependencies.ts'

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

/**
 * Sends batches as server-sent events (WHATWG HTML §9.2) until the source ends, the client leaves, or its token ends.
 * Takes the next batch once the socket has accepted the last, so a slow reader slows only itself. `comment` is sent
 * every `interval` milliseconds to keep a silent stream open.
 */
export async function sendEvents(
  request: FastifyRequest,
  reply: FastifyReply,
  { hints, facts, store, clock, log }: Pick<Context, 'hints' | 'facts' | 'store' | 'clock' | 'log'>,
  source: (signal: AbortSignal) => AsyncGenerator<string | Buffer>,
  comment: () => string = () => ':\n\n',
  interval: number = pingInterval,
): Promise<void> {
  const controller = new AbortController()
  const { tokenId, expiresAt, idleAt } = userOf(request)
  const life = Math.min(expiresAt, idleAt) - clock.now()
  // The client resumes an ended stream.
  const expiry = setTimeout(() => controller.abort(), Math.min(Math.max(0, life), longestTimer))
  const unsubscribe = [
    hints.subscribe('tokenEnded', tokenId, () => controller.abort()),
    facts.subscribe('stopping', () => controller.abort()),
  ]
  const checkToken = async () => {
    if (!(await store.get('tokens', tokenId))) controller.abort()
  }
  // The token may have ended between authentication and subscription.
  await checkToken()
  const { raw } = reply
  reply.hijack()
  raw.on('close', () => controller.abort())
  raw.on('error', () => controller.abort())
  if (raw.destroyed) controller.abort()
  raw.writeHead(200, {
    ...(reply.getHeaders() as OutgoingHttpHeaders),
    'content-type': 'text/event-stream; charset=utf-8',
    'x-accel-buffering': 'no',
  })
  raw.flushHeaders()
  // HEAD needs only the headers; waiting for events would hold the connection needlessly.
  if (request.method === 'HEAD') controller.abort()
  const comments = setInterval(() => {
    if (!raw.writableNeedDrain) raw.write(comment())
    // The hint may be lost. An unreachable store ends no stream.
    checkToken().catch(() => undefined)
  }, interval)
  const route = request.routeOptions.url ?? 'unknown'
  facts.publish('stream', { route, opened: true })
  try {
    for await (const batch of source(controller.signal)) {
      if (controller.signal.aborted) break
      if (!raw.write(batch)) await once(raw, 'drain', { signal: controller.signal })
    }
  } catch (error) {
    // Fastify no longer handles errors of a started answer.
    if (!controller.signal.aborted) log.error({ requestId: request.id, route, err: error }, 'stream failed')
  } finally {
    clearInterval(comments)
    clearTimeout(expiry)
    for (const end of unsubscribe) end()
    facts.publish('stream', { route, opened: false })
    // A stalled reader would hold the connection open, and read the buffered rest after its token ended.
    if (raw.writableNeedDrain) raw.destroy()
    else raw.end()
  }
}
