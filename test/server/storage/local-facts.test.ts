import { once } from 'node:events'
import test from 'ava'
import Fastify from 'fastify'
import { Registry } from 'prom-client'
import { createClients } from '../../../src/server/access/client-address.ts'
import { createRefusals } from '../../../src/server/audit/refusals.ts'
import { recordServerEvents } from '../../../src/server/audit/server-events.ts'
import { countWork } from '../../../src/server/metrics/metrics.ts'
import { sendEvents } from '../../../src/server/routes/events.ts'
import { publishTokenEnded } from '../../../src/server/services/context.ts'
import { createLocalFacts, type LocalFacts } from '../../../src/server/storage/local-facts.ts'
import { auditDirectory, openLog } from '../../helpers/audit/audit-log.ts'
import { parseScrape } from '../../helpers/metrics/scrape.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { until } from '../../helpers/until.ts'

test('a server that stops ends only its own streams; a token that ends closes the streams of both servers', async (t) => {
  const { context } = await startInsides(t)
  const [token] = (await context.store.query('tokens')).items
  const life = { expiresAt: Number.POSITIVE_INFINITY, idleAt: Number.POSITIVE_INFINITY }
  const standing = { tokenKind: 'session', ownerRole: 'ADMIN', rights: [], mayOutlast: true } as const
  const streamOf = async (facts: LocalFacts) => {
    const app = Fastify()
    app.decorateRequest('caller')
    app.get('/stream', (request, reply) => {
      const user = { type: 'user', id: 1, username: 'admin', role: 'ADMIN' } as const
      request.caller = { ...user, ...standing, ...life, tokenId: token?.id ?? 0 }
      return sendEvents(request, reply, { ...context, facts }, async function* (signal) {
        yield 'data: 1\n\n'
        await once(signal, 'abort')
      })
    })
    t.teardown(() => app.close())
    const response = await fetch(`${await app.listen({ host: '127.0.0.1', port: 0 })}/stream`)
    const stream = { isOver: false }
    void response.text().then(() => Object.assign(stream, { isOver: true }))
    return stream
  }
  const [stopping, staying] = [createLocalFacts(), createLocalFacts()]
  const ofStopping = await streamOf(stopping)
  const ofStaying = [await streamOf(staying), await streamOf(staying)]
  stopping.publish('stopping', { reason: 'the server is shutting down' })
  await until('its own stream ends', () => ofStopping.isOver)
  t.deepEqual(
    ofStaying.map(({ isOver }) => isOver),
    [false, false],
  )
  context.hints.publish('tokenEnded', { id: token?.id ?? 0 })
  await until('the others end', () => ofStaying.every(({ isOver }) => isOver))
})

test('only the server that ends a token or a task records and counts it', async (t) => {
  const { context } = await startInsides(t)
  const audit = await openLog(await auditDirectory(t))
  t.teardown(() => audit.close())
  const notedHead = { missing: async () => null, note: async () => undefined }
  const [ours, other] = [createLocalFacts(), createLocalFacts()]
  const counts = [ours, other].map((facts) => {
    const refusals = createRefusals((event) => audit.append(event), context.clock)
    const events = recordServerEvents({
      clients: createClients([]),
      ...context,
      audit,
      outbox: audit,
      noted: notedHead,
      refusals,
      facts,
    })
    t.teardown(() => events.stop())
    const registry = new Registry()
    countWork(registry, facts)
    return async () => parseScrape(await registry.metrics()).of('rsm_executions_total{result="SUCCESS"}')
  })
  const revoked: string[] = []
  for (const server of ['A', 'B'])
    context.hints.subscribe('agentRevoked', null, ({ id }) => revoked.push(`${server} ${id}`))
  publishTokenEnded({ facts: ours, hints: context.hints }, 'agent-1')
  await until('both were notified', () => revoked.length >= 2)
  t.deepEqual(revoked.toSorted(), ['A agent-1', 'B agent-1'])
  const written = async () => (await audit.list({ action: 'agent.tokenEnd' })).content.length
  await until('it is written', async () => (await written()) > 0)
  t.is(await written(), 1)
  ours.publish('resultFinal', { status: 'SUCCESS', duration: 12 })
  t.deepEqual(await Promise.all(counts.map((count) => count())), [1, 0])
})
