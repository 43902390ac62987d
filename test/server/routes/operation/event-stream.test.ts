import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import test from 'ava'
import Fastify from 'fastify'
import pino from 'pino'
import { sendEvents } from '../../../../src/server/routes/operation/event-stream.ts'
import { startInsides } from '../../../helpers/servers/services.ts'

test('a stream that fails is ended, and its fault is logged with the id of the request', async (t) => {
  const { context } = await startInsides(t)
  const [token] = (await context.store.query('tokens')).items
  const lines = new PassThrough()
  const log = pino(lines)
  const app = Fastify({ genReqId: () => 'request-7' })
  app.decorateRequest('caller')
  app.get('/stream', (request, reply) => {
    const life = { expiresAt: Number.POSITIVE_INFINITY, idleAt: Number.POSITIVE_INFINITY }
    const session = {
      tokenId: token?.id ?? 0,
      tokenKind: 'session',
      ownerRole: 'ADMIN',
      rights: [],
      mayOutlast: true,
      ...life,
    } as const
    request.caller = { type: 'user', id: 1, username: 'admin', role: 'ADMIN', ...session }
    return sendEvents(request, reply, { ...context, log }, async function* () {
      yield 'data: 1\n\n'
      throw new Error('the log can not be read')
    })
  })
  t.teardown(() => app.close())
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const logged = once(lines, 'data')
  t.is(await (await fetch(`${url}/stream`)).text(), 'data: 1\n\n')
  const line = JSON.parse(String(await logged)) as object
  t.like(line, { requestId: 'request-7', route: '/stream', msg: 'stream failed' })
  t.like(line, { err: { message: 'the log can not be read' } })
})
