import test from 'ava'
import { systemClock as clock, isoTime } from '../../../src/server/clock.ts'
import { createHostWatch } from '../../../src/server/webhooks/hosts.ts'
import { startInsides } from '../../helpers/servers/services.ts'

test('a webhook keeps no host that is gone among those that it was told are offline', async (t) => {
  const { services, context } = await startInsides(t)
  const { store, fleet, webhookEvents } = context
  const ids: number[] = []
  for (const hostname of ['web1', 'web2', 'web3'])
    ids.push((await services.hosts.create({ hostname, ip: '10.0.0.1' })).id)
  const [told, down, gone] = ids as [number, number, number]
  const url = 'https://alerts.example.org/rsm'
  const { id } = await services.webhooks.create({
    name: 'a',
    url,
    events: ['host.offline'],
    selector: 'web2',
  })
  await store.transact(async (tx) => {
    const webhook = await tx.get('webhooks', id)
    const host = await tx.get('hosts', down)
    if (!webhook || !host) throw new Error('they are there')
    tx.put('webhooks', { ...webhook, offline: `${told},${gone}` })
    const registeredAt = isoTime(clock.now())
    const identity = { agentId: 'a', agentVersion: '1', registeredAt, tokenHash: null, tokenUsed: true }
    tx.put('hosts', { ...host, agent: { ...identity, enrollmentId: null } })
  })
  await services.hosts.remove(gone)
  await webhookEvents.known()
  const hostGrace = { offline: 0, online: 0 }
  await createHostWatch({ store, webhookEvents, fleet, clock, hostGrace }).look(webhookEvents.all())
  const { items } = await store.query('deliveries')
  t.deepEqual(
    items.map(({ event, data }) => [event, data]),
    [['host.offline', { nodes: 'web2', count: 1 }]],
  )
  t.is((await store.get('webhooks', id))?.offline, `${told}-${down}`)
})
