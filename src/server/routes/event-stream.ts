import { once } from 'node:events'
import type { OutgoingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { longestTimer, pingInterval } from '../../core/protocol/bounds.ts'
import { userOf } from '../http/auth.ts'
import type { Context } from '../services/context.ts'

/**
 * Sends batches of events as a stream (WHATWG HTML §9.2) until the source ends, the client leaves, or the token that
 * opened it ends. The next batch is asked for when the socket has taken the last: a slow reader slows only itself.
 * `comment` is what keeps a silent stream open, every `interval` milliseconds.
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
  // A client whose stream ends resumes it.
  const expiry = setTimeout(() => controller.abort(), Math.min(Math.max(0, life), longestTimer))
  const unsubscribe = [
    hints.subscribe('tokenEnded', tokenId, () => controller.abort()),
    facts.subscribe('stopping', () => controller.abort()),
  ]
  const checkToken = async () => {
    if (!(await store.get('tokens', tokenId))) controller.abort()
  }
  // It may have ended after it was looked at and before the subscription.
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
  // To HEAD the headers are the whole answer; waiting for the task's end would hold the connection for nothing.
  if (request.method === 'HEAD') controller.abort()
  const comments = setInterval(() => {
    if (!raw.writableNeedDrain) raw.write(comment())
    // The hint may have been lost. A store that can not be read ends no stream.
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
    // The answer has begun and is no longer Fastify's: whoever threw would not be heard.
    if (!controller.signal.aborted) log.error({ requestId: request.id, route, err: error }, 'stream failed')
  } finally {
    clearInterval(comments)
    clearTimeout(expiry)
    for (const end of unsubscribe) end()
    facts.publish('stream', { route, opened: false })
    // What a reader that is stuck has not taken would hold the connection open, and be read after its token has ended.
    if (raw.writableNeedDrain) raw.destroy()
    else raw.end()
  }
}
