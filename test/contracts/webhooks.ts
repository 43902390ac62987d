import type { TestFn } from 'ava'
import { rejects, rejectsUnknown } from './rejects.ts'
import type { ServicesOf } from './services-of.ts'

const url = 'https://alerts.example.org/rsm'
const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`

/** Suite for every implementation of WebhookService (contract §16). */
export function webhooksContract(test: TestFn, name: string, open: ServicesOf): void {
  test(`${name} webhooks: a webhook is read as it was created, without its secret, which is shown once`, async (t) => {
    const { webhooks } = await open(t)
    const made = await webhooks.create({ name: 'On Call', url, events: ['task.failed', 'host.offline'] })
    t.like(made, { url, selector: null, format: 'JSON', enabled: true, owner: 'admin' })
    t.regex(made.secret ?? '', /^whsec_[A-Za-z0-9+/]{43}=$/)
    const { secret: _, ...shown } = made
    t.deepEqual(await webhooks.get(made.id), shown)
    t.deepEqual((await webhooks.list({ name: 'on call' })).content, [shown])
    const own = await webhooks.create({ name: 'own', url, events: ['task.ended'], secret, format: 'SLACK' })
    t.is(own.secret, null)
    t.is((await webhooks.list({})).totalElements, 2)
    t.is((await webhooks.deliveries(made.id, {})).totalElements, 0)
  })

  test(`${name} webhooks: a patch changes the fields that it names; a secret of null makes a new one`, async (t) => {
    const { webhooks, hosts } = await open(t)
    await hosts.create({ hostname: 'web1', ip: '10.0.0.1' })
    const made = await webhooks.create({ name: 'a', url, events: ['task.failed'], selector: 'web1' })
    const patch = {
      events: ['host.online' as const],
      selector: null,
      enabled: false,
      format: 'TEAMS' as const,
    }
    const changed = await webhooks.update(made.id, patch)
    t.like(changed, { ...patch, name: 'a', url, secret: null, createdAt: made.createdAt })
    const again = await webhooks.update(made.id, { secret: null, format: null })
    t.is(again.format, 'JSON')
    t.regex(again.secret ?? '', /^whsec_/)
    t.not(again.secret, made.secret)
    t.is((await webhooks.update(made.id, { secret })).secret, null)
  })

  test(`${name} webhooks: names are unique, and ids are never reused`, async (t) => {
    const { webhooks } = await open(t)
    const first = await webhooks.create({ name: 'a', url, events: ['task.failed'] })
    await rejects(t, 'conflict', webhooks.create({ name: 'A', url, events: ['task.failed'] }))
    t.deepEqual(await webhooks.remove(first.id), { id: first.id })
    await rejects(t, 'not_found', webhooks.get(first.id))
    await rejects(t, 'not_found', webhooks.remove(first.id))
    await rejects(t, 'not_found', webhooks.deliveries(first.id, {}))
    await rejects(t, 'not_found', webhooks.test(first.id))
    const second = await webhooks.create({ name: 'A', url, events: ['task.failed'] })
    t.true(second.id > first.id)
  })

  test(`${name} webhooks: a forbidden URL, a bad secret and an invalid selector are refused, all at once`, async (t) => {
    const { webhooks } = await open(t)
    const good = { name: 'a', url, events: ['task.failed' as const] }
    const bad = { ...good, url: 'https://127.0.0.1/', secret: 'whsec_short', selector: 'web[' }
    t.deepEqual(await rejects(t, 'invalid', webhooks.create(bad)), ['secret', 'selector', 'url'])
    t.deepEqual(await rejectsUnknown(t, webhooks.create({ ...good, selector: 'nosuch' })), ['selector'])
    for (const secret of [
      '',
      'whsec_',
      `whsec_${Buffer.alloc(23).toString('base64')}`,
      `${'x'.repeat(6)}AAAA`,
    ])
      t.deepEqual(await rejects(t, 'invalid', webhooks.create({ ...good, secret })), ['secret'])
    const tooLong = `whsec_${Buffer.alloc(65).toString('base64')}`
    t.deepEqual(await rejects(t, 'invalid', webhooks.create({ ...good, secret: tooLong })), ['secret'])
    const made = await webhooks.create(good)
    t.deepEqual(await rejects(t, 'invalid', webhooks.update(made.id, { url: 'http://10.0.0.1/' })), ['url'])
    t.is((await webhooks.get(made.id)).url, url)
  })

  test(`${name} webhooks: filters show the current names of schedules, scripts and users, or their last names`, async (t) => {
    const { webhooks, scripts, schedules, users, hosts } = await open(t)
    await hosts.create({ hostname: 'web1', ip: '10.0.0.1' })
    const target = { selector: 'web1' }
    const nightly = await schedules.create({
      name: 'nightly',
      cron: '0 3 * * *',
      script: { content: 'x' },
      target,
    })
    const deploy = await scripts.create({ name: 'deploy', type: 'BASH', content: 'x' })
    const ann = await users.create({ username: 'ann', password: 'correct horse', role: 'OPERATOR' })
    const filters = { schedule: 'Nightly', script: 'DEPLOY', createdBy: 'ann' }
    const made = await webhooks.create({ name: 'a', url, events: ['task.failed'], ...filters })
    t.like(made, { schedule: 'nightly', script: 'deploy', createdBy: 'ann' })
    await schedules.update(nightly.id, { name: 'weekly' })
    await scripts.remove(deploy.id)
    await users.update(ann.id, { username: 'anna' })
    const kept = { schedule: 'weekly', script: 'deploy', createdBy: 'anna' }
    t.like(await webhooks.get(made.id), kept)
    t.like(await webhooks.update(made.id, { name: 'b' }), kept)
    // The form of the console repeats all of them.
    t.like(await webhooks.update(made.id, { ...kept, name: 'c' }), kept)
    const any = { schedule: '*', script: null, createdBy: null }
    t.like(await webhooks.update(made.id, any), any)
    t.like((await webhooks.list({})).content[0], any)
    const bad = { schedule: 'wekly', script: 'deploy', createdBy: 'nobody' }
    t.deepEqual(
      await rejectsUnknown(t, webhooks.create({ name: 'd', url, events: ['task.failed'], ...bad })),
      ['createdBy', 'schedule', 'script'],
    )
    await t.throwsAsync(webhooks.update(made.id, { schedule: 'wekly' }), {
      message: /no such schedule: wekly \(did you mean weekly\?\)/,
    })
  })

  test(`${name} webhooks: the limit is one hundred`, async (t) => {
    const { webhooks } = await open(t)
    for (let count = 0; count < 100; count++)
      await webhooks.create({ name: `w${count}`, url, events: ['task.failed'] })
    await rejects(t, 'conflict', webhooks.create({ name: 'one more', url, events: ['task.failed'] }))
  })

  test(`${name} webhooks: a test explains why nothing is sent to a refused address`, async (t) => {
    const { webhooks } = await open(t)
    const { id } = await webhooks.create({ name: 'a', url: 'https://localhost/', events: ['task.failed'] })
    const outcome = await webhooks.test(id)
    t.like(outcome, { delivered: false, status: null })
    t.regex(
      outcome.error ?? '',
      /leads to (127\.0\.0\.1|::1), which is not a public address.*--webhook-allow/,
    )
  })
}
