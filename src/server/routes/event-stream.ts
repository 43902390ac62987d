import { once } from 'node:events'
import type { OutgoingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { userOf } from '../auth.ts'
import type { Bus } from '../bus.ts'
import type { FollowEvent } from '../services/follow.ts'

/** A comment line so often keeps proxies from closing a silent stream (contract §5). */
const commentInterval = 15_000
/** `setTimeout` takes no more; a client whose stream ends resumes it. */
const longestTimer = 2 ** 31 - 1

function text({ event, id, data }: FollowEvent): string {
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`
}

/**
 * Sends batches of events as a stream (WHATWG HTML §9.2) until the source ends, the client leaves, or the token that
 * opened it ends. The next batch is asked for when the socket has taken the last: a slow reader slows only itself.
 */
export async function sendEvents(
  request: FastifyRequest,
  reply: FastifyReply,
  bus: Bus,
  source: (signal: AbortSignal) => AsyncGenerator<FollowEvent[]>,
): Promise<void> {
  const leave = new AbortController()
  const { tokenId, expiresAt } = userOf(request)
  const expiry = setTimeout(() => leave.abort(), Math.min(Math.max(0, expiresAt - Date.now()), longestTimer))
  const unsubscribe = [
    bus.subscribe('tokenEnded', tokenId, () => leave.abort()),
    bus.subscribe('stopping', null, () => leave.abort()),
  ]
  const { raw } = reply
  reply.hijack()
  raw.on('close', () => leave.abort())
  raw.on('error', () => leave.abort())
  if (raw.destroyed) leave.abort()
  raw.writeHead(200, {
    ...(reply.getHeaders() as OutgoingHttpHeaders),
    'content-type': 'text/event-stream; charset=utf-8',
    'x-accel-buffering': 'no',
  })
  raw.flushHeaders()
  // To HEAD the headers are the whole answer; waiting for the task's end would hold the connection for nothing.
  if (request.method === 'HEAD') leave.abort()
  const comments = setInterval(() => {
    if (!raw.writableNeedDrain) raw.write(':\n\n')
  }, commentInterval)
  const route = request.routeOptions.url ?? 'unknown'
  bus.publish('stream', route, { route, opened: true })
  try {
    for await (const events of source(leave.signal)) {
      if (leave.signal.aborted) break
      if (!raw.write(events.map((event) => text(event)).join('')))
        await once(raw, 'drain', { signal: leave.signal })
    }
  } catch (error) {
    if (!leave.signal.aborted) throw error
  } finally {
    clearInterval(comments)
    clearTimeout(expiry)
    for (const end of unsubscribe) end()
    bus.publish('stream', route, { route, opened: false })
    raw.end()
  }
}
