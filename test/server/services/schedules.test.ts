import test from 'ava'
import { startInsides } from '../../helpers/servers/services.ts'

test('a slot queued during a rename of its schedule stays queued', async (t) => {
  const { services, context } = await startInsides(t)
  const { store } = context
  const script = { content: 'true' }
  const every = { everySeconds: 3600, overlap: 'QUEUE', script, target: { selector: '@*' } } as const
  const { id } = await services.schedules.create({ name: 'hourly', ...every })
  const slot = '2026-01-01T00:00:00.000Z'
  // Queues the slot between reading and changing the schedule.
  const renamed = services.schedules.update(id, { name: 'each hour' })
  await store.transact(async (tx) => {
    const record = await tx.get('schedules', id)
    if (record) tx.put('schedules', { ...record, queued: slot })
  })
  t.is((await renamed).name, 'each hour')
  t.is((await store.get('schedules', id))?.queued, slot)
  t.deepEqual((await services.schedules.history(id, {})).content, [])
  await services.schedules.update(id, { enabled: false })
  t.is((await store.get('schedules', id))?.queued, null)
  t.like((await services.schedules.history(id, {})).content, [{ plannedAt: slot, why: 'PAUSED' }])
})
