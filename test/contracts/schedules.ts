import type { TestFn } from 'ava'
import type { ScheduleCreate } from '../../src/core/protocol/http/schedules.ts'
import type { Services } from '../../src/core/services.ts'
import { rejects, rejectsUnknown } from './rejects.ts'
import type { ServicesOf } from './services-of.ts'

/** So far ahead that no test reaches it. */
const later = '2099-01-01T00:00:00.000Z'

/** Suite for every implementation of ScheduleService (contract §14). */
export function schedulesContract(test: TestFn, name: string, open: ServicesOf): void {
  const script = { content: 'true' }
  const nightly: ScheduleCreate = { name: 'nightly', cron: '0 3 1 1 *', script, target: { selector: '@*' } }
  const host = async ({ hosts }: Services) => (await hosts.create({ hostname: 'web1', ip: '10.0.0.1' })).id

  test(`${name} schedules: omitted fields have defaults, and names are unique regardless of case`, async (t) => {
    const { schedules } = await open(t)
    const made = await schedules.create(nightly)
    t.like(made, { ...nightly, timezone: 'UTC', enabled: true, overlap: 'SKIP', missed: 'ONCE' })
    t.like(made, { missedWithinSeconds: 3600, jitterSeconds: 0, from: null, until: null, at: null })
    t.like(made, { everySeconds: null, scriptId: null, lastTask: null, suspended: null, owner: 'admin' })
    t.deepEqual([made.params, made.secretParams], [{}, []])
    t.regex(made.nextAt ?? '', /^20\d\d-01-01T03:00:00\.000Z$/)
    t.deepEqual(await schedules.get(made.id), made)
    await rejects(t, 'conflict', schedules.create({ ...nightly, name: 'NIGHTLY' }))
    const other = await schedules.create({ ...nightly, name: 'weekly' })
    const names = async (query: object) => (await schedules.list(query)).content.map((one) => one.name)
    t.deepEqual(await names({}), ['nightly', 'weekly'])
    t.deepEqual(await names({ name: 'Weekly' }), ['weekly'])
    t.deepEqual(await names({ search: 'IGHT' }), ['nightly'])
    t.deepEqual(await schedules.remove(other.id), { id: other.id })
    for (const work of [
      schedules.get(other.id),
      schedules.update(other.id, {}),
      schedules.remove(other.id),
      schedules.run(other.id),
      schedules.next(other.id, {}),
      schedules.history(other.id, {}),
    ])
      await rejects(t, 'not_found', work)
  })

  test(`${name} schedules: the next times are in the schedule's time zone, also while it is paused`, async (t) => {
    const { schedules } = await open(t)
    const { id } = await schedules.create({
      ...nightly,
      cron: '30 3 * * *',
      timezone: 'Europe/Berlin',
      from: '2099-07-01T00:00:00+02:00',
      until: '2099-07-03T03:30:00+02:00',
      enabled: false,
    })
    t.like(await schedules.get(id), { nextAt: null, from: '2099-06-30T22:00:00.000Z' })
    t.deepEqual(await schedules.next(id, {}), {
      next: ['2099-07-01T01:30:00.000Z', '2099-07-02T01:30:00.000Z', '2099-07-03T01:30:00.000Z'],
    })
    t.deepEqual(await schedules.next(id, { count: 1 }), { next: ['2099-07-01T01:30:00.000Z'] })
    t.like(await schedules.update(id, { enabled: true }), { nextAt: '2099-07-01T01:30:00.000Z' })
    const every = await schedules.update(id, { everySeconds: 90, timezone: null, until: null })
    t.like(every, { cron: null, everySeconds: 90, timezone: 'UTC', nextAt: '2099-06-30T22:00:00.000Z' })
    t.deepEqual(await rejects(t, 'invalid', schedules.update(id, { at: later })), ['at'])
    t.like(await schedules.update(id, { at: later, from: null }), { everySeconds: null, nextAt: later })
  })

  test(`${name} schedules: a patch changes the fields that it names; params merge, null resets`, async (t) => {
    const { schedules, scripts } = await open(t)
    const { id } = await schedules.create({
      ...nightly,
      params: { A: '1', B: '2' },
      secretParams: { KEY: 'one', OLD: 'two' },
      strategy: 'ROLLING',
      batchSize: '50%',
      jitterSeconds: 30,
    })
    const changed = await schedules.update(id, {
      params: { B: null, C: '3' },
      secretParams: { OLD: null, NEW: 'three' },
      batchSize: null,
      strategy: null,
      timeout: 9,
      jitterSeconds: null,
      overlap: 'QUEUE',
    })
    t.deepEqual([changed.params, changed.secretParams.toSorted()], [{ A: '1', C: '3' }, ['KEY', 'NEW']])
    t.like(changed, { timeout: 9, jitterSeconds: 0, overlap: 'QUEUE', script, cron: nightly.cron })
    t.false('strategy' in changed || 'batchSize' in changed)
    const stored = await scripts.create({ name: 's', type: 'BASH', content: 'true' })
    t.like(await schedules.update(id, { scriptId: stored.id }), { scriptId: stored.id, script: null })
    t.like(await schedules.update(id, { params: null, name: 'other' }), { params: {}, name: 'other' })
  })

  test(`${name} schedules: secrets stay with a script that their owner changes`, async (t) => {
    const services = await open(t)
    const { schedules, scripts } = services
    await host(services)
    const { id: scriptId } = await scripts.create({ name: 's', type: 'BASH', content: 'true' })
    const { script: _, ...timed } = nightly
    const secret = { scriptId, secretParams: { KEY: 'x' }, queueSeconds: 0 }
    const { id } = await schedules.create({ ...timed, ...secret })
    await scripts.update(scriptId, { content: 'false' })
    t.is((await schedules.run(id)).hostCount, 1)
    t.deepEqual((await schedules.update(id, { confirmed: true })).secretParams, ['KEY'])
    t.is((await schedules.run(id)).hostCount, 1)
  })

  test(`${name} schedules: all errors of a request are reported at once`, async (t) => {
    const services = await open(t)
    const { schedules, scripts } = services
    const create = (more: object) => schedules.create({ ...nightly, ...more })
    for (const [more, fields] of [
      [{ cron: '* * * * * *' }, ['cron']],
      [{ cron: 'at night', batchSize: 3 }, ['batchSize', 'cron']],
      [{ cron: '0 0 30 2 *' }, ['cron']],
      [{ cron: undefined }, ['cron']],
      [{ everySeconds: 5 }, ['cron']],
      [{ timezone: 'Europe/Berln', params: { A: '\u{10ffff}'.repeat(40_000) } }, ['params.A', 'timezone']],
      [{ script: undefined }, ['scriptId']],
      [{ scriptId: 1 }, ['scriptId']],
      [{ target: {} }, ['target']],
      [{ target: { selector: 'web[' } }, ['target.selector']],
      [{ target: { tags: ['role'] } }, ['target.tags[0]']],
      [{ params: { A: '1' }, secretParams: { A: '2' } }, ['secretParams.A']],
      [{ jitterSeconds: 366 * 86_400 }, ['jitterSeconds']],
      [{ until: '2001-01-01T00:00:00Z' }, ['until']],
    ] as const)
      t.deepEqual(await rejects(t, 'invalid', create(more)), [...fields], JSON.stringify(more).slice(0, 80))
    t.deepEqual(await rejectsUnknown(t, create({ script: undefined, scriptId: 99 })), ['scriptId'])
    t.deepEqual(await rejectsUnknown(t, create({ target: { clusterId: 9 } })), ['target.clusterId'])
    const declares = '# rsm: param VERSION required pattern="[0-9]+"\ntrue'
    const stored = await scripts.create({ name: 's', type: 'BASH', content: declares })
    const ofStored = { script: undefined, scriptId: stored.id }
    t.deepEqual(await rejects(t, 'invalid', create(ofStored)), ['params.VERSION'])
    const { id } = await create({ ...ofStored, params: { VERSION: '1' } })
    t.deepEqual(await rejects(t, 'invalid', schedules.update(id, { params: { VERSION: 'x' } })), [
      'params.VERSION',
    ])
    t.deepEqual(await rejects(t, 'invalid', schedules.update(id, { timezone: 'Mars' })), ['timezone'])
    t.like(await schedules.get(id), { params: { VERSION: '1' }, timezone: 'UTC' })
  })

  test(`${name} schedules: run starts a task of the schedule now, and the history names the user`, async (t) => {
    const services = await open(t)
    const { schedules, tasks } = services
    const { id } = await schedules.create({ ...nightly, params: { A: '1' }, queueSeconds: 0, enabled: false })
    t.deepEqual(await rejectsUnknown(t, schedules.run(id)), ['target'])
    t.is((await schedules.history(id, {})).totalElements, 0)
    await host(services)
    const { taskId, hostCount } = await schedules.run(id)
    t.is(hostCount, 1)
    t.like(await tasks.get(taskId), { scheduleId: id, plannedAt: null, params: { A: '1' } })
    await tasks.create({ script, target: { selector: '@*' }, queueSeconds: 0 })
    const second = await schedules.run(id)
    const listed = await tasks.list({ scheduleId: id })
    t.deepEqual(
      listed.content.map((task) => task.taskId),
      [second.taskId, taskId],
    )
    t.is((await schedules.get(id)).lastTask?.taskId, second.taskId)
    const { content } = await schedules.history(id, {})
    t.deepEqual(
      content.map((slot) => [slot.outcome, slot.by, slot.taskId]),
      [
        ['STARTED', 'admin', second.taskId],
        ['STARTED', 'admin', taskId],
      ],
    )
    await schedules.remove(id)
    t.like(await tasks.get(taskId), { scheduleId: id })
  })
}
