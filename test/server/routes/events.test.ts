import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import type { ExecutionContext } from 'ava'
import test from 'ava'
import Fastify from 'fastify'
import pino from 'pino'
import type { Log } from '../../../src/disk/log.ts'
import { sendEvents } from '../../../src/server/routes/events.ts'
import { startInsides } from '../../helpers/servers/services.ts'

/** A server whose only route is a stream; it checks the token frequently. */
async function streaming(t: ExecutionContext, log: Log, source: Parameters<typeof sendEvents>[3]) {
  const { context } = await startInsides(t)
  const [token] = (await context.store.query('tokens')).items
  const tokenId = token?.id ?? 0
  const app = Fastify({ genReqId: () => 'request-7' })
  app.decorateRequest('caller')
  app.get('/stream', (request, reply) => {
    const life = { expiresAt: Number.POSITIVE_INFINITY, idleAt: Number.POSITIVE_INFINITY }
    const session = {
      tokenId,
      tokenKind: 'session',
      ownerRole: 'ADMIN',
      rights: [],
      mayOutlast: true,
    } as const
    request.caller = { type: 'user', id: 1, username: 'admin', role: 'ADMIN', ...session, ...life }
    return sendEvents(request, reply, { ...context, log }, source, () => ':\n\n', 50)
  })
  t.teardown(() => app.close())
  const url = `${await app.listen({ host: '127.0.0.1', port: 0 })}/stream`
  return { url, endToken: () => context.store.transact((tx) => tx.remove('tokens', tokenId)) }
}

test('a failed stream is ended, and its error is logged with the request id', async (t) => {
  const lines = new PassThrough()
  const { url } = await streaming(t, pino(lines), async function* () {
    yield 'data: 1\n\n'
    throw new Error('the log cannot be read')
  })
  const logged = once(lines, 'data')
  t.is(await (await fetch(url)).text(), 'data: 1\n\n')
  const line = JSON.parse(String(await logged)) as object
  t.like(line, { requestId: 'request-7', route: '/stream', msg: 'stream failed' })
  t.like(line, { err: { message: 'the log cannot be read' } })
})

test('a stream ends with the token that opened it, even if the hint is lost', async (t) => {
  const { url, endToken } = await streaming(t, pino({ level: 'silent' }), async function* (signal) {
    yield 'data: 1\n\n'
    await once(signal, 'abort')
  })
  const response = await fetch(url)
  await endToken()
  t.regex(await response.text(), /^data: 1\n\n/)
})
