import type { ServerResponse } from 'node:http'
import test from 'ava'
import { createCluster } from '../../../src/server/storage/files/cluster.ts'
import type { ExecutionReads } from '../../../src/server/storage/ports/executions.ts'
import { createDeliveries } from '../../../src/server/webhooks/deliveries.ts'
import { createWebhookEvents } from '../../../src/server/webhooks/events.ts'
import { createJudge } from '../../../src/server/webhooks/judge.ts'
import { createPost } from '../../../src/server/webhooks/post.ts'
import { createSender } from '../../../src/server/webhooks/sender.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { idsOf, startReceiver } from '../../helpers/servers/webhook-receiver.ts'
import { until } from '../../helpers/until.ts'

test('a server that loses a webhook and owns it again repeats each event at most once, in order', async (t) => {
  const { context, services } = await startInsides(t)
  const { store, fleet, keys, facts, agreed, clock, log } = context
  const receiver = await startReceiver(t)
  const held: ServerResponse[] = []
  receiver.answers((response) => {
    if (held.length === 0) held.push(response)
    else response.writeHead(204).end()
  })
  const { id } = await services.webhooks.create({ name: 'a', url: 'https://a.example.org/', events: [] })
  const webhookEvents = await createWebhookEvents({
    store,
    executions: { page: async () => [] } as unknown as ExecutionReads,
    fleet,
    clock,
    log,
  })
  await store.transact(async (tx) => {
    const webhook = await tx.get('webhooks', id)
    if (webhook) tx.put('webhooks', { ...webhook, url: receiver.url, events: ['agent.revoked'] })
  })
  await webhookEvents.known()
  for (const hostname of ['a', 'b', 'c'])
    await store.transact(async (tx) => webhookEvents.write(tx, 'agent.revoked', { hostname }))
  let up = 0
  const { ownership } = createCluster({ now: () => clock.now(), monotonic: () => up })
  const member = await ownership.join('one')
  let owns = false
  const post = createPost(createJudge({ insecure: true, allow: ['127.0.0.1'] }))
  const deliveries = createDeliveries({
    store,
    webhookEvents,
    sender: createSender({ post, keys, clock }),
    fleet,
    ownership: {
      ...ownership,
      async claim(claimer, names) {
        const mine = await ownership.claim(claimer, names)
        owns = mine.length > 0
        return mine
      },
    },
    member,
    holdsLease: () => true,
    openSince: async () => null,
    facts,
    record: async () => undefined,
    agreed,
    clock,
    log,
    hostGrace: { offline: 60_000, online: 60_000 },
  })
  t.teardown(async () => {
    await deliveries.stop()
    post.close()
  })
  let delivered = 0
  facts.subscribe('webhook', ({ count }) => {
    delivered += count
  })
  deliveries.start()
  await receiver.first(1)
  // Its lease ends, and another server takes and leaves the webhook while the first attempt waits for its response.
  up += 11_000
  const other = await ownership.join('two')
  t.deepEqual(await ownership.claim(other, [`webhook/${id}`]), [`webhook/${id}`])
  await until('the webhook is lost', () => !owns)
  await ownership.renew(member)
  await ownership.leave(other)
  await until('all events are sent', () => delivered >= 3)
  held[0]?.writeHead(204).end()
  await until('the first attempt ends too', () => delivered >= 4)
  const [first, ...rest] = idsOf(receiver.got)
  t.deepEqual(rest, [...new Set(rest)])
  t.deepEqual(rest, rest.toSorted())
  t.is(rest[0], first)
})
