import test, { type ExecutionContext } from 'ava'
import type { Schedule, ScheduleSlot } from '../../../src/core/protocol/http/schedules.ts'
import { jitterOf } from '../../../src/core/schedules/timing.ts'
import { systemClock } from '../../../src/disk/clock.ts'
import { createPlanner } from '../../../src/server/services/schedules/planner.ts'
import { createSlotRunner } from '../../../src/server/services/schedules/slot-runner.ts'
import { createCluster } from '../../../src/server/storage/files/cluster.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { sha256Of } from '../../helpers/clients/files.ts'
import { task } from '../../helpers/clients/tasks.ts'
import { ShiftedClock } from '../../helpers/faults/shifted-clock.ts'
import { adminLogin, startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { startReceiver } from '../../helpers/servers/webhook-receiver.ts'
import { until } from '../../helpers/until.ts'

interface World {
  server: TestServer
  clock: ShiftedClock
  agent: ScriptedAgent
  make: (more?: object) => Promise<Schedule>
  of: (id: number) => Promise<Schedule>
  history: (id: number) => Promise<ScheduleSlot[]>
  /** Waits until the history has this number of entries; returns them, newest first. */
  happened: (id: number, count: number) => Promise<ScheduleSlot[]>
}

const hour = 3600

/** Hours that pass do not affect links, which are measured by the monotonic clock. */
class Calendar extends ShiftedClock {
  override monotonic(): number {
    return performance.now()
  }
}

/** A server with one host, whose time passes when the test says so. */
async function startWorld(t: ExecutionContext, options: object = {}): Promise<World> {
  const clock = new Calendar()
  const server = await startTestServer(t, { clock, ...options })
  const agent = await ScriptedAgent.link(server, await server.enroll('web1'))
  t.teardown(() => agent.cut())
  const plain = { everySeconds: hour, script: { content: 'true' }, target: { selector: 'web1' } }
  const history = async (id: number): Promise<ScheduleSlot[]> =>
    (await server.data('GET', `/api/schedules/${id}/history?size=200`)).content
  return {
    server,
    clock,
    agent,
    make: (more = {}) => server.data('POST', '/api/schedules', { name: 'nightly', ...plain, ...more }),
    of: (id) => server.data('GET', `/api/schedules/${id}`),
    history,
    async happened(id, count) {
      await until(`${count} entries`, async () => (await history(id)).length >= count)
      const found = await history(id)
      t.is(found.length, count)
      return found
    },
  }
}

/** Waits for an entry with this action, which is written after the action; returns the newest. */
async function audited(server: TestServer, action: string): Promise<any> {
  const found = async () => (await server.data('GET', `/api/audit?action=${action}`)).content
  await until(`${action} is recorded`, async () => (await found()).length > 0)
  return (await found())[0]
}

test('a schedule whose time zone this server does not know is suspended, and others are not affected', async (t) => {
  const { context, services } = await startInsides(t)
  const nightly = { cron: '* * * * *', script: { content: 'true' }, target: { selector: '@*' } }
  const { id } = await services.schedules.create({ ...nightly, name: 'nightly' })
  await services.schedules.create({ ...nightly, name: 'other' })
  const elsewhere = await context.store.transact(async (tx) => {
    const record = await tx.get('schedules', id)
    if (!record) throw new Error('no schedule')
    const changed = { ...record, timezone: 'Mars/Olympus' }
    tx.put('schedules', changed)
    return changed
  })
  t.deepEqual(
    (await services.schedules.list({})).content.map(({ nextAt }) => nextAt === null),
    [true, false],
  )
  const present = { now: systemClock.now(), jumpedTo: null, restoredAt: null }
  t.is(await createSlotRunner(context).poll(elsewhere, present), 'DONE')
  t.regex((await services.schedules.get(id)).suspended ?? '', /does not know its time zone/)
})

test("a slot starts a task of the owner with the schedule's params and secrets, and the script's current version", async (t) => {
  const { server, clock, agent, make, of, happened } = await startWorld(t)
  const { id: scriptId } = await server.data('POST', '/api/scripts', {
    name: 'deploy',
    type: 'BASH',
    content: 'one',
  })
  const { id, nextAt } = await make({
    script: undefined,
    scriptId,
    params: { A: '1' },
    secretParams: { KEY: 'hidden' },
  })
  await server.data('PATCH', `/api/scripts/${scriptId}`, { content: 'two' })
  clock.forward(hour)
  const sent = await agent.execution()
  t.is(sent.script, 'two')
  t.like(sent.params, { A: '1', KEY: 'hidden' })
  agent.complete(sent.taskId)
  const [slot] = await happened(id, 1)
  t.like(slot, { outcome: 'STARTED', plannedAt: nextAt, firstAt: nextAt, count: 1, taskId: sent.taskId })
  t.like(await task(server, sent.taskId), {
    scheduleId: id,
    plannedAt: nextAt,
    createdBy: 'admin',
    scriptVersion: 2,
  })
  await until('its end is recorded', async () => (await of(id)).lastTask?.status === 'SUCCESS')
  t.is(Date.parse((await of(id)).nextAt ?? '') - Date.parse(nextAt ?? ''), hour * 1000)
  t.like(await audited(server, 'schedule.run'), {
    actor: { type: 'system' },
    object: { type: 'schedule', id, name: 'nightly' },
    outcome: 'SUCCESS',
    detail: {
      plannedAt: nextAt,
      taskId: sent.taskId,
      owner: 'admin',
      scriptId,
      scriptVersion: 2,
      hostCount: 1,
      sha256: sha256Of('two'),
    },
  })
  const metrics = await server.data('GET', '/metrics')
  t.regex(metrics, /^rsm_schedule_slots_total\{outcome="STARTED"\} 1$/m)
  t.regex(metrics, /^rsm_schedule_late_seconds_count 1$/m)
})

test('a slot whose target matches no host, or only a removed one, is recorded as FAILED', async (t) => {
  const { server, clock, make, of, happened } = await startWorld(t)
  const { id } = await make({ target: { selector: 'web1!web1' } })
  clock.forward(hour)
  const [slot] = await happened(id, 1)
  t.like(slot, { outcome: 'FAILED', taskId: null })
  t.regex(slot?.error ?? '', /^target: matches no host/)
  t.like((await of(id)).lastTask, { taskId: null, status: 'FAILED' })
  t.like(await audited(server, 'schedule.run'), { outcome: 'FAILED', detail: { message: slot?.error } })
  const { id: hostId } = await server.data('POST', '/api/hosts', { hostname: 'web2', ip: '10.0.0.2' })
  const gone = await make({ name: 'gone', target: { hostIds: [hostId] } })
  await server.data('DELETE', `/api/hosts/${hostId}`)
  clock.forward(hour)
  t.regex((await happened(gone.id, 1))[0]?.error ?? '', /^target\.hostIds\[0\]: no such host: 2/)
})

test('a slot during a running task of its schedule is skipped, held, or run, as `overlap` says', async (t) => {
  const { server, clock, agent, make, happened, history } = await startWorld(t)
  const begun = async (id: number) => {
    clock.forward(hour)
    await happened(id, 1)
    return agent.execution()
  }
  const skip = await make({ name: 'skip' })
  const first = await begun(skip.id)
  clock.forward(hour)
  t.like((await happened(skip.id, 2))[0], { outcome: 'SKIPPED', why: 'OVERLAP', taskId: null })
  t.like(await audited(server, 'schedule.skip'), {
    object: { type: 'schedule', name: 'skip' },
    detail: { why: 'OVERLAP' },
  })
  agent.complete(first.taskId)
  await server.data('DELETE', `/api/schedules/${skip.id}`)

  const queue = await make({ name: 'queue', overlap: 'QUEUE' })
  const held = await begun(queue.id)
  clock.forward(hour)
  await until('the held slot is in the past', async () => {
    const { nextAt } = (await server.data('GET', `/api/schedules/${queue.id}`)) as Schedule
    return Date.parse(nextAt ?? '') > clock.now()
  })
  t.is((await history(queue.id)).length, 1)
  clock.forward(hour)
  t.like((await happened(queue.id, 2))[0], { outcome: 'SKIPPED', why: 'OVERLAP' })
  agent.complete(held.taskId)
  const waited = await agent.execution()
  const slots = await happened(queue.id, 3)
  t.is(slots.find(({ taskId }) => taskId === waited.taskId)?.outcome, 'STARTED')
  agent.complete(waited.taskId)
  await server.data('DELETE', `/api/schedules/${queue.id}`)

  const allow = await make({ name: 'allow', overlap: 'ALLOW' })
  const one = await begun(allow.id)
  clock.forward(hour)
  const two = await agent.execution()
  t.not(one.taskId, two.taskId)
  t.deepEqual(
    (await happened(allow.id, 2)).map(({ outcome }) => outcome),
    ['STARTED', 'STARTED'],
  )
})

test('after downtime a server starts the newest of the missed runs, or none, as `missed` says', async (t) => {
  const { server, clock, make, happened, of } = await startWorld(t)
  const once = await make({ name: 'once', missedWithinSeconds: hour })
  const never = await make({ name: 'never', missed: 'SKIP' })
  const late = await make({ name: 'late', missedWithinSeconds: 60 })
  await server.stop()
  clock.forward(5 * hour + 600)
  await server.restart()
  const [skipped, ran] = (await happened(once.id, 2)).toSorted((a, b) => (a.outcome < b.outcome ? -1 : 1))
  t.like(ran, { outcome: 'STARTED', why: null, count: 1 })
  t.like(skipped, { outcome: 'SKIPPED', why: 'MISSED', count: 4 })
  t.is(Date.parse(ran?.plannedAt ?? '') - Date.parse(skipped?.plannedAt ?? ''), hour * 1000)
  t.is(Date.parse(skipped?.plannedAt ?? '') - Date.parse(skipped?.firstAt ?? ''), 3 * hour * 1000)
  for (const { id } of [never, late]) {
    const slots = await happened(id, 2)
    t.deepEqual(
      slots.map(({ outcome, why, count }) => [outcome, why, count]),
      [
        ['SKIPPED', 'MISSED', 1],
        ['SKIPPED', 'MISSED', 4],
      ],
    )
    t.is((await of(id)).lastTask, null)
  }
})

test('a paused schedule misses nothing, and its held slot is skipped', async (t) => {
  const { server, clock, agent, make, of, happened, history } = await startWorld(t)
  const { id } = await make({ overlap: 'QUEUE' })
  clock.forward(hour)
  const running = await agent.execution()
  clock.forward(hour)
  await until('one slot is held', async () => Date.parse((await of(id)).nextAt ?? '') > clock.now())
  t.like(await server.data('PATCH', `/api/schedules/${id}`, { enabled: false }), { nextAt: null })
  t.like((await happened(id, 2))[0], { outcome: 'SKIPPED', why: 'PAUSED' })
  agent.complete(running.taskId)
  clock.forward(3 * hour)
  await server.data('PATCH', `/api/schedules/${id}`, { enabled: true })
  clock.forward(hour)
  const next = await agent.execution()
  t.is((await happened(id, 3))[0]?.taskId, next.taskId)
  t.is((await history(id)).length, 3)
})

/** Owner and token that write a schedule, and an event that ends their right. */
const endings: {
  title: string
  by: 'session' | 'token'
  end: (w: World, user: number, token: number) => Promise<unknown>
  why: RegExp
}[] = [
  {
    title: 'its owner is demoted',
    by: 'session',
    end: ({ server }, user) => server.data('PATCH', `/api/users/${user}`, { role: 'VIEWER' }),
    why: /^its owner olga was demoted: it was written as OPERATOR, and olga is VIEWER now$/,
  },
  {
    title: 'its owner is disabled',
    by: 'session',
    end: ({ server }, user) => server.data('PATCH', `/api/users/${user}`, { enabled: false }),
    why: /^its owner olga is disabled$/,
  },
  {
    title: 'its owner is deleted',
    by: 'session',
    end: ({ server }, user) => server.data('DELETE', `/api/users/${user}`),
    why: /^its owner olga was deleted$/,
  },
  {
    title: 'the token that wrote it is revoked',
    by: 'token',
    end: ({ server }, user) => server.data('PATCH', `/api/users/${user}`, { password: 'another long one' }),
    why: /^the token of olga that wrote it was revoked$/,
  },
  {
    title: 'the token that wrote it expires',
    by: 'token',
    end: async ({ clock, server }) => {
      clock.forward(2 * 86_400)
      server.token = (await server.data('POST', '/api/auth/login', adminLogin)).token
    },
    why: /^the token of olga that wrote it has expired$/,
  },
]

for (const { title, by, end, why } of endings)
  test(`a schedule is suspended with a reason when ${title}; a user who resumes it owns it, without the other's secrets`, async (t) => {
    const world = await startWorld(t)
    const { server, clock, make, of, agent, happened } = world
    const login = { username: 'olga', password: 'long enough' }
    const { id: user } = await server.data('POST', '/api/users', { ...login, role: 'OPERATOR' })
    const admin = server.token
    server.token = (await server.data('POST', '/api/auth/login', login)).token
    const made = await server.data('POST', '/api/tokens', { name: 'ci', expiresInDays: 1 })
    if (by === 'token') server.token = made.token
    const { id, owner } = await make({ secretParams: { KEY: 'hidden' } })
    t.is(owner, 'olga')
    server.token = admin
    await end(world, user, made.id)
    await until('it is suspended', async () => (await of(id)).suspended !== null)
    const suspended = await of(id)
    t.regex(suspended.suspended ?? '', why)
    t.like(suspended, { nextAt: null, enabled: true, owner: 'olga', lastTask: null })
    t.like(await audited(server, 'schedule.suspend'), {
      object: { type: 'schedule', id },
      detail: { message: suspended.suspended, owner: 'olga' },
    })
    const resumed = await server.data('PATCH', `/api/schedules/${id}`, { enabled: true })
    t.like(resumed, { suspended: null, owner: 'admin', secretParams: [] })
    const before = (await server.data('GET', `/api/schedules/${id}/history`)).totalElements
    clock.forward(hour)
    const { params } = await agent.execution()
    t.false(Object.hasOwn(params ?? {}, 'KEY'))
    await happened(id, before + 1)
  })

test("a slot that would be held after the schedule's token expired is recorded as skipped", async (t) => {
  const { server, clock, agent, make, of, happened } = await startWorld(t)
  const made = await server.data('POST', '/api/tokens', { name: 'ci', expiresInDays: 1 })
  server.token = made.token
  const { id, nextAt } = await make({ everySeconds: 20 * hour, overlap: 'QUEUE' })
  clock.forward(20 * hour)
  await agent.execution()
  clock.forward(20 * hour)
  server.token = (await server.data('POST', '/api/auth/login', adminLogin)).token
  await until('it is suspended', async () => (await of(id)).suspended !== null)
  const [skipped, ran] = await happened(id, 2)
  t.like(ran, { outcome: 'STARTED', plannedAt: nextAt })
  const second = new Date(Date.parse(nextAt ?? '') + 20 * hour * 1000).toISOString()
  t.like(skipped, { outcome: 'SKIPPED', why: 'SUSPENDED', plannedAt: second, count: 1 })
})

test('a slot that is still delayed when its schedule is paused, changed or suspended is skipped and reported', async (t) => {
  const receiver = await startReceiver(t)
  const webhooks = { insecure: true, allow: ['127.0.0.1'] }
  const { server, clock, make, happened } = await startWorld(t, { webhooks })
  const events = ['schedule.skipped']
  await server.data('POST', '/api/webhooks', { name: 'on call', url: receiver.url, events })
  const login = { username: 'olga', password: 'long enough' }
  const { id: user } = await server.data('POST', '/api/users', { ...login, role: 'OPERATOR' })
  const admin = server.token
  const soon = Math.ceil(clock.now() / 1000) * 1000 + hour * 1000
  /** The first slot is within 10 minutes from `soon`, and its jitter delays it beyond that. */
  const makePutOff = async (nextId: number): Promise<Schedule> => {
    let from = soon
    while (jitterOf(nextId, from, (hour - 1) * 1000) < 1200_000) from += 1000
    t.true(from < soon + 500_000)
    const timing = { from: new Date(from).toISOString(), jitterSeconds: hour - 1 }
    const made = await make({ name: `put off ${nextId}`, ...timing })
    t.like(made, { id: nextId, nextAt: timing.from })
    return made
  }
  const paused = await makePutOff(1)
  const changed = await makePutOff(2)
  server.token = (await server.data('POST', '/api/auth/login', login)).token
  const suspended = await makePutOff(3)
  server.token = admin
  clock.forward(hour + 600)
  await server.data('PATCH', `/api/schedules/${paused.id}`, { enabled: false })
  await server.data('PATCH', `/api/schedules/${paused.id}`, { enabled: true })
  await server.data('PATCH', `/api/schedules/${changed.id}`, { everySeconds: 2 * hour, from: null })
  await server.data('PATCH', `/api/users/${user}`, { enabled: false })
  const wanted = [
    [paused, 'PAUSED'],
    [changed, 'CHANGED'],
    [suspended, 'SUSPENDED'],
  ] as const
  for (const [{ id, nextAt }, why] of wanted)
    t.like((await happened(id, 1))[0], { outcome: 'SKIPPED', why, plannedAt: nextAt, count: 1 })
  const told = await receiver.first(3)
  t.deepEqual(
    told.map(({ body }) => `${body.data.scheduleId} ${body.data.why} ${body.data.plannedAt}`).toSorted(),
    wanted.map(([{ id, nextAt }, why]) => `${id} ${why} ${nextAt}`),
  )
  const entries = async (): Promise<any[]> =>
    (await server.data('GET', '/api/audit?action=schedule.skip')).content
  await until('all entries are written', async () => (await entries()).length === 3)
  t.deepEqual(
    (await entries()).map(({ object, detail }) => `${object.id} ${detail.why}`).toSorted(),
    wanted.map(([{ id }, why]) => `${id} ${why}`),
  )
  const metrics = await server.data('GET', '/metrics')
  t.regex(metrics, /^rsm_schedule_slots_total\{outcome="SKIPPED"\} 3$/m)
  for (const [, why] of wanted)
    t.true(metrics.includes(`\nrsm_schedule_skipped_total{why="${why}"} 1\n`), why)
  t.true(metrics.includes('\nrsm_schedule_skipped_total{why="MISSED"} 0\n'))
})

test('a clock that is set days ahead makes no slot due; later slots run', async (t) => {
  const { server, clock, agent, make, happened } = await startWorld(t)
  agent.serve()
  const { id, nextAt } = await make({ overlap: 'ALLOW' })
  const slot = (count: number) => new Date(Date.parse(nextAt ?? '') + count * hour * 1000).toISOString()
  clock.set(48 * hour)
  server.token = (await server.data('POST', '/api/auth/login', adminLogin)).token
  t.like((await happened(id, 1))[0], {
    outcome: 'SKIPPED',
    why: 'CLOCK',
    firstAt: slot(0),
    plannedAt: slot(47),
    count: 48,
  })
  clock.forward(hour)
  t.like((await happened(id, 2))[0], { outcome: 'STARTED', plannedAt: slot(48) })
})

test('after a clock is corrected a server runs the slots that were skipped, and none twice', async (t) => {
  const { server, clock, agent, make, of, happened } = await startWorld(t)
  agent.serve()
  const idle = await make({ name: 'idle' })
  const ran = await make({ name: 'ran', everySeconds: hour / 2 })
  clock.set(48 * hour)
  server.token = (await server.data('POST', '/api/auth/login', adminLogin)).token
  await happened(idle.id, 1)
  await happened(ran.id, 1)
  clock.forward(hour / 2)
  const last = (await happened(ran.id, 2))[0]?.plannedAt ?? ''
  clock.set(-48 * hour)
  await until('the change is noticed', async () => (await of(idle.id)).nextAt === idle.nextAt)
  t.is(Date.parse((await of(ran.id)).nextAt ?? '') - Date.parse(last), (hour / 2) * 1000)
  clock.forward(hour / 2)
  await until('the slot has run', async () => (await of(idle.id)).lastTask !== null)
  const slots = await happened(idle.id, 2)
  t.deepEqual(
    slots.map(({ outcome, why }) => [outcome, why]),
    [
      ['SKIPPED', 'CLOCK'],
      ['STARTED', null],
    ],
  )
  t.like(slots[1], { plannedAt: idle.nextAt })
  t.is((await happened(ran.id, 2)).length, 2)
})

test('an owner who lost the right while the store failed is checked once the store responds', async (t) => {
  const { context, services } = await startInsides(t)
  const olga = await services.users.create({ username: 'olga', password: 'long enough', role: 'OPERATOR' })
  const script = { content: 'true' }
  const target = { selector: '@*' }
  const { id } = await services.schedules.create({ name: 'n', at: '2099-01-01T00:00:00Z', script, target })
  await context.store.transact(async (tx) => {
    const record = await tx.get('schedules', id)
    if (record) tx.put('schedules', { ...record, ownerId: olga.id, owner: 'olga', role: 'OPERATOR' })
  })
  let failures = 0
  const find: typeof context.store.find = async (...args) => {
    if (failures++ === 0) throw new Error('the store is unavailable')
    return context.store.find(...args)
  }
  const owners = createCluster(systemClock).ownership
  let passes = 0
  const release: typeof owners.release = async (...args) => {
    passes++
    return owners.release(...args)
  }
  const planner = createPlanner({
    context: { ...context, store: { ...context.store, find } },
    ownership: { ...owners, release },
    member: await owners.join('a'),
    audit: { refusal: null },
  })
  planner.start()
  t.teardown(() => planner.stop())
  // At the start all owners are checked.
  await until('the first pass is over', () => passes > 0)
  await services.users.update(olga.id, { enabled: false })
  await until('it is suspended', async () => (await services.schedules.get(id)).suspended !== null, 10_000)
  t.true(failures > 1)
})

test('webhooks get an event for a skipped slot and for a suspended schedule', async (t) => {
  const receiver = await startReceiver(t)
  const webhooks = { insecure: true, allow: ['127.0.0.1'] }
  const { server, clock, make, agent } = await startWorld(t, { webhooks })
  const events = ['schedule.skipped', 'schedule.suspended']
  await server.data('POST', '/api/webhooks', { name: 'on call', url: receiver.url, events })
  const { id: user } = await server.data('POST', '/api/users', {
    username: 'olga',
    password: 'long enough',
    role: 'OPERATOR',
  })
  const admin = server.token
  server.token = (
    await server.data('POST', '/api/auth/login', { username: 'olga', password: 'long enough' })
  ).token
  const { id, nextAt } = await make()
  server.token = admin
  clock.forward(hour)
  await agent.execution()
  clock.forward(hour)
  const plannedAt = new Date(Date.parse(nextAt ?? '') + hour * 1000).toISOString()
  const about = { scheduleId: id, name: 'nightly', owner: 'olga' }
  const [skipped] = await receiver.first(1)
  t.like(skipped?.body, {
    type: 'schedule.skipped',
    data: { ...about, why: 'OVERLAP', firstAt: plannedAt, plannedAt, count: 1 },
  })
  await server.data('PATCH', `/api/users/${user}`, { enabled: false })
  const [, suspended] = await receiver.first(2)
  t.like(suspended?.body, {
    type: 'schedule.suspended',
    data: { ...about, why: 'its owner olga is disabled' },
  })
})

test('a schedule is changed by its owner and by ADMINs; a user who changes what it runs becomes its owner', async (t) => {
  const { server, make } = await startWorld(t)
  const people = ['olga', 'otto'].map((username) => ({ username, password: 'long enough' }))
  const tokens: string[] = []
  const admin = server.token
  for (const login of people) {
    server.token = admin
    await server.data('POST', '/api/users', { ...login, role: 'OPERATOR' })
    tokens.push((await server.data('POST', '/api/auth/login', login)).token)
  }
  const by = (token = '') => {
    server.token = token
    return server
  }
  by(tokens[0])
  const { id } = await make({ secretParams: { KEY: 'x' } })
  const path = `/api/schedules/${id}`
  for (const [method, body] of [['PATCH', { timeout: 5 }], ['DELETE']] as const) {
    const { status, body: answer } = await by(tokens[1]).api(method, path, body)
    t.is(status, 403)
    t.is(
      answer.message,
      'you are otto (OPERATOR); schedule nightly belongs to olga: only olga or an ADMIN may change it',
    )
  }
  t.is((await by(tokens[1]).api('POST', `${path}/run`)).status, 403)
  t.like(await by(admin).data('PATCH', path, { cron: '0 4 29 2 *', overlap: 'ALLOW' }), {
    owner: 'olga',
    secretParams: ['KEY'],
  })
  t.like(await by(tokens[0]).data('PATCH', path, { params: { A: '1' } }), {
    owner: 'olga',
    secretParams: ['KEY'],
  })
  t.like(await by(admin).data('PATCH', path, { runAs: 'deploy' }), { owner: 'admin', secretParams: [] })
  t.is((await by(tokens[0]).api('PATCH', path, { timeout: 5 })).status, 403)
  const { taskId } = await by(tokens[1]).data('POST', `${path}/run`)
  t.like(await task(server, taskId), { createdBy: 'otto', scheduleId: id, plannedAt: null })
})

test('a history keeps its newest 100 entries', async (t) => {
  const { server, agent, make, history } = await startWorld(t)
  agent.serve()
  const { id } = await make()
  const runs = 104
  const taskIds: string[] = []
  for (let run = 0; run < runs; run++)
    taskIds.push((await server.data('POST', `/api/schedules/${id}/run`)).taskId)
  t.deepEqual(
    (await history(id)).map(({ taskId }) => taskId),
    taskIds.toReversed().slice(0, 100),
  )
  t.is((await server.data('GET', `/api/tasks?scheduleId=${id}`)).totalElements, runs)
})
