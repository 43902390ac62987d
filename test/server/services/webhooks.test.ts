import test from 'ava'
import type { WebhookPatch } from '../../../src/core/protocol/http/webhooks.ts'
import { startInsides } from '../../helpers/servers/services.ts'

test('a changed webhook remembers the hosts it reported, unless its events or selector changed', async (t) => {
  const { services, context } = await startInsides(t)
  const url = 'https://alerts.example.org/rsm'
  const { id } = await services.webhooks.create({ name: 'a', url, events: ['host.offline', 'host.online'] })
  const changed = async (patch: WebhookPatch) => {
    await context.store.transact(async (tx) => {
      const record = await tx.get('webhooks', id)
      if (record) tx.put('webhooks', { ...record, offline: '7' })
    })
    await services.webhooks.update(id, patch)
    return (await context.store.get('webhooks', id))?.offline
  }
  // The fields that the form of the console sends.
  const same: WebhookPatch = { events: ['host.online', 'host.offline'], selector: null, enabled: true }
  t.is(await changed({ ...same, name: 'b', url, format: 'SLACK' }), '7')
  t.is(await changed({ ...same, events: ['host.offline'] }), '')
  t.is(await changed({ enabled: false }), '')
  t.is(await changed({ selector: '@*' }), '')
})

test('a webhook of an older server with obsolete events and without filters can be read and edited', async (t) => {
  const { services, context } = await startInsides(t)
  const url = 'https://alerts.example.org/rsm'
  const { id } = await services.webhooks.create({ name: 'a', url, events: ['task.failed'] })
  await context.store.transact(async (tx) => {
    const { schedule, script, createdBy, ...record } = (await tx.get('webhooks', id)) ?? t.fail()
    t.deepEqual([schedule, script, createdBy], [undefined, undefined, undefined])
    const events = ['approval.requested', 'task.failed'] as (typeof record)['events']
    tx.put('webhooks', { ...record, events })
  })
  const shown = { name: 'b', events: ['task.failed'], schedule: null, script: null, createdBy: null } as const
  t.like(await services.webhooks.update(id, { name: 'b' }), shown)
  t.like(await services.webhooks.update(id, { events: ['task.ended'] }), { ...shown, events: ['task.ended'] })
})
