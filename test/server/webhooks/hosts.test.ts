import test from 'ava'
import { createDirectory, type SelectorHost } from '../../../src/core/selector/directory.ts'
import { systemClock as clock, isoTime } from '../../../src/disk/clock.ts'
import { createHostWatch } from '../../../src/server/webhooks/hosts.ts'
import { startInsides } from '../../helpers/servers/services.ts'

test('a webhook forgets removed hosts that it reported as offline', async (t) => {
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
  await createHostWatch({ store, webhookEvents, fleet, clock, hostGrace }).poll(webhookEvents.all())
  const { items } = await store.query('deliveries')
  t.deepEqual(
    items.map(({ event, data }) => [event, data]),
    [['host.offline', { nodes: 'web2', count: 1 }]],
  )
  t.is((await store.get('webhooks', id))?.offline, `${told}-${down}`)
})

test('a host without a link is reported offline once after the grace period, unless agents may be returning', async (t) => {
  const { services, context } = await startInsides(t)
  const { store, webhookEvents } = context
  const { id: hostId } = await services.hosts.create({ hostname: 'web1', ip: '10.0.0.1' })
  const events = ['host.offline', 'host.online'] as const
  const { id } = await services.webhooks.create({
    name: 'a',
    url: 'https://example.org/',
    events: [...events],
  })
  await store.transact(async (tx) => {
    const host = await tx.get('hosts', hostId)
    if (!host) throw new Error('it is there')
    const identity = { agentId: 'a', agentVersion: '1', registeredAt: '', tokenHash: null, tokenUsed: true }
    tx.put('hosts', { ...host, agent: { ...identity, enrollmentId: null } })
  })
  await webhookEvents.known()
  let seconds = 0
  let isReturning = true
  const well = { status: 'ONLINE', reachable: true, noLink: false }
  let standing: Partial<SelectorHost> = well
  const directory = async () =>
    createDirectory(
      [{ id: hostId, hostname: 'web1', tags: {}, os: null, arch: null, ...well, ...standing }],
      [],
    )
  const watch = createHostWatch({
    store,
    webhookEvents,
    clock: { ...clock, monotonic: () => seconds * 1000 },
    hostGrace: { offline: 60_000, online: 15_000 },
    fleet: {
      directory,
      get isReturning() {
        return isReturning
      },
    },
  })
  const told = async (after: number) => {
    seconds += after
    await watch.poll(webhookEvents.all())
    return (await store.query('deliveries')).items.map(({ event }) => event)
  }
  const noLink = { ...well, reachable: false, noLink: true }
  standing = noLink
  t.deepEqual([await told(0), await told(90)], [[], []], 'a server has just started')
  isReturning = false
  t.deepEqual([await told(0), await told(59)], [[], []])
  standing = well
  t.deepEqual([await told(0), await told(70)], [[], []], 'it returned in time')
  standing = noLink
  t.deepEqual([await told(0), await told(60)], [[], ['host.offline']])
  isReturning = true
  t.deepEqual(await told(60), ['host.offline'], 'a server start does not bring hosts back')
  standing = { ...noLink, status: 'OFFLINE', noLink: false }
  t.deepEqual([await told(0), await told(60)], [['host.offline'], ['host.offline']])
  isReturning = false
  standing = noLink
  t.deepEqual([await told(0), await told(60)], [['host.offline'], ['host.offline']])
  standing = well
  t.deepEqual((await told(0)).length, 1)
  t.deepEqual((await told(15)).toSorted(), [...events])
  t.is((await store.get('webhooks', id))?.offline, '')
})
