import test from 'ava'
import type { Task } from '../../../src/core/protocol/http/tasks.ts'
import { end, noted } from '../../helpers/agents/noted-link.ts'
import { type Insides, startInsides } from '../../helpers/servers/services.ts'
import { until } from '../../helpers/until.ts'

async function fleet(insides: Insides, size: number): Promise<number[]> {
  const ids: number[] = []
  for (let index = 1; index <= size; index++)
    ids.push((await insides.services.hosts.create({ hostname: `web${index}`, ip: '192.0.2.1' })).id)
  return ids
}

/** Settles when the server has checked the disk before a write, at time `from` or later. */
async function lookedAt({ context: { store } }: Insides, from = 0): Promise<void> {
  const before = Object.getOwnPropertyDescriptor(store, 'readOnlyReason') ?? {}
  let isLooked = false
  Object.defineProperty(store, 'readOnlyReason', {
    ...before,
    get() {
      isLooked ||= Date.now() >= from
      return before.get?.call(store)
    },
  })
  await until('the server checks the disk', () => isLooked)
  Object.defineProperty(store, 'readOnlyReason', before)
}

async function ended({ services }: Insides, taskId: string): Promise<Task> {
  await until('the task ends', async () => (await services.tasks.get(taskId)).status !== 'RUNNING')
  return services.tasks.get(taskId)
}

test('a cancel that the disk refuses changes nothing; repeated, it ends everything', async (t) => {
  const insides = await startInsides(t)
  const [first = 0, second = 0] = await fleet(insides, 2)
  const agent = noted(first)
  await insides.engine.linked(agent.link)
  const { taskId } = await insides.services.tasks.create({
    script: { content: 'true' },
    target: { hostIds: [first, second] },
    strategy: 'SEQUENTIAL',
  })
  await until('the execution is sent', () => agent.executions.length === 1)
  insides.refuse(true)
  await t.throwsAsync(insides.services.tasks.cancel(taskId), { message: /disk is full/ })
  insides.refuse(false)
  t.like(await insides.services.tasks.get(taskId), { status: 'RUNNING', counts: { RUNNING: 1, PENDING: 1 } })
  const cancelled = await insides.services.tasks.cancel(taskId)
  t.is(cancelled.counts.CANCELLED, 1)
  await insides.engine.complete(agent.link, 'f1', end(taskId, 143))
  t.like(await ended(insides, taskId), { status: 'CANCELLED', counts: { CANCELLED: 2 } })
})

test('hosts that could not be skipped on a full disk are skipped once there is room', async (t) => {
  const insides = await startInsides(t)
  const ids = await fleet(insides, 3)
  const agents = ids.map((id) => noted(id))
  for (const { link } of agents) await insides.engine.linked(link)
  const { taskId } = await insides.services.tasks.create({
    script: { content: 'false' },
    target: { hostIds: ids },
    strategy: 'SEQUENTIAL',
  })
  const [agent] = agents
  if (!agent) return t.fail()
  await until('the execution is sent', () => agent.executions.length === 1)
  // The end is on disk; the step that follows from it is refused.
  const settled = insides.engine.complete(agent.link, 'f1', end(taskId, 1))
  await until('the end is stored', async () => (await insides.services.tasks.get(taskId)).counts.FAILED === 1)
  insides.refuse(true)
  await settled
  await lookedAt(insides)
  insides.refuse(false)
  t.like(await ended(insides, taskId), { status: 'FAILED', counts: { FAILED: 1, SKIPPED: 2 } })
  t.true(agents.slice(1).every(({ executions }) => executions.length === 0))
})

test('an end that the disk refuses is not acknowledged, and counts when it is repeated', async (t) => {
  const insides = await startInsides(t)
  const [id = 0] = await fleet(insides, 1)
  const agent = noted(id)
  await insides.engine.linked(agent.link)
  const { taskId } = await insides.services.tasks.create({
    script: { content: 'exit 3' },
    target: { hostIds: [id] },
  })
  await until('the execution is sent', () => agent.executions.length === 1)
  insides.refuse(true)
  await t.throwsAsync(insides.engine.complete(agent.link, 'f1', end(taskId, 3)), { message: /disk is full/ })
  t.deepEqual(agent.released, [])
  insides.refuse(false)
  await insides.engine.complete(agent.link, 'f2', end(taskId, 3))
  t.deepEqual(agent.released, [taskId])
  t.like(await ended(insides, taskId), { status: 'FAILED', counts: { FAILED: 1 } })
})

test('an end that arrives before its output and is then refused by the disk closes the link to be repeated', async (t) => {
  const insides = await startInsides(t)
  const [id = 0] = await fleet(insides, 1)
  const agent = noted(id)
  await insides.engine.linked(agent.link)
  const { taskId } = await insides.services.tasks.create({
    script: { content: 'exit 3' },
    target: { hostIds: [id] },
  })
  await until('the execution is sent', () => agent.executions.length === 1)
  await insides.engine.complete(agent.link, 'f1', end(taskId, 3, 0))
  insides.refuse(true)
  await insides.engine.output(agent.link, 'f2', { taskId, stream: 'stdout', sequence: 0, data: 'x' })
  await until('the link is closed', () => agent.closed.length === 1)
  t.deepEqual([agent.closed, agent.released], [[1013], []])
  insides.refuse(false)
  await insides.engine.complete(agent.link, 'f3', end(taskId, 3, 0))
  t.like(await ended(insides, taskId), { status: 'FAILED', counts: { FAILED: 1 } })
})

test('an execution whose frame was never sent is sent once a full disk has room, without a new HELLO', async (t) => {
  const insides = await startInsides(t)
  const [id = 0] = await fleet(insides, 1)
  const agent = noted(id)
  const real = { ...agent.link }
  let refused = 0
  agent.link.send = (type, payload) => {
    if (type !== 'EXECUTE_SCRIPT' || refused > 0) return real.send(type, payload)
    refused += 1
    insides.refuse(true)
    return false
  }
  await insides.engine.linked(agent.link)
  const { taskId } = await insides.services.tasks.create({
    script: { content: 'true' },
    target: { hostIds: [id] },
  })
  await until('the frame does not leave', () => refused === 1)
  // A link that connects in between is not sent the execution, because it may be taken back at any moment.
  await insides.engine.linked(agent.link)
  t.is(agent.executions.length, 0)
  t.like(await insides.services.tasks.get(taskId), { counts: { RUNNING: 1 } })
  insides.refuse(false)
  await until('the execution is sent', () => agent.executions.length === 1)
  await insides.engine.complete(agent.link, 'f1', end(taskId, 0))
  t.like(await ended(insides, taskId), { status: 'SUCCESS' })
})

test('an execution that its agent must not run is FAILED once a full disk has room again', async (t) => {
  const insides = await startInsides(t)
  const [id = 0] = await fleet(insides, 1)
  const agent = noted(id)
  let looks = 0
  Object.defineProperty(agent.link.hello?.capabilities ?? {}, 'limits', {
    // The dispatcher reads it once the execution is marked as sent.
    get() {
      looks += 1
      insides.refuse(looks === 1)
      return []
    },
  })
  await insides.engine.linked(agent.link)
  const { taskId } = await insides.services.tasks.create({
    script: { content: 'true' },
    target: { hostIds: [id] },
    limits: { memoryMB: 64 },
  })
  await until('the disk is full', () => looks === 1)
  t.like(await insides.services.tasks.get(taskId), { counts: { RUNNING: 1 } })
  insides.refuse(false)
  const { results } = await ended(insides, taskId)
  t.like(results[0], { status: 'FAILED', exitCode: 126, startedAt: null })
  t.is(agent.executions.length, 0)
})

test('a host that could not be given up on a full disk is given up once there is room', async (t) => {
  const insides = await startInsides(t)
  const [id = 0] = await fleet(insides, 1)
  const { taskId } = await insides.services.tasks.create({
    script: { content: 'true' },
    target: { hostIds: [id] },
    queueSeconds: 1,
  })
  insides.refuse(true)
  await lookedAt(insides, Date.now() + 1000)
  t.is((await insides.services.tasks.get(taskId)).counts.PENDING, 1)
  insides.refuse(false)
  t.like(await ended(insides, taskId), { counts: { UNREACHABLE: 1 } })
})
