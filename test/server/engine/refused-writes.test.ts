import { setTimeout } from 'node:timers/promises'
import test from 'ava'
import type { Task } from '../../../src/core/protocol/http/tasks.ts'
import type { ExecuteScript, ScriptAck } from '../../../src/core/protocol/messages.ts'
import type { AgentLink } from '../../../src/server/engine/agent-link.ts'
import { type Insides, startInsides } from '../../helpers/services.ts'

/** A link whose frames are only noted. */
function noted(hostId: number) {
  const executions: ExecuteScript[] = []
  const released: string[] = []
  const link: AgentLink = {
    hostId,
    agentId: `agent-${hostId}`,
    hello: {
      agentVersion: 'test',
      storeId: `journal-${hostId}`,
      capabilities: { maxExecutions: 16, scriptTypes: ['BASH'], containment: 'cgroup', terminal: false },
      tasks: [],
    },
    send(type, payload) {
      if (type === 'EXECUTE_SCRIPT') executions.push(payload as ExecuteScript)
      if (type === 'SCRIPT_ACK' && (payload as ScriptAck).complete)
        released.push((payload as ScriptAck).taskId)
      return true
    },
    close: () => undefined,
  }
  return { link, executions, released }
}

const end = (taskId: string, exitCode: number) => ({
  taskId,
  exitCode,
  duration: 1,
  startedAt: new Date().toISOString(),
  completedAt: new Date().toISOString(),
  lastSequence: -1,
})

async function fleet(insides: Insides, size: number): Promise<number[]> {
  const ids: number[] = []
  for (let index = 1; index <= size; index++)
    ids.push((await insides.services.hosts.create({ hostname: `web${index}`, ip: '192.0.2.1' })).id)
  return ids
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    if (await condition()) return
    await setTimeout(25)
  }
  throw new Error('waited in vain')
}

async function ended({ services }: Insides, taskId: string): Promise<Task> {
  await until(async () => (await services.tasks.get(taskId)).status !== 'RUNNING')
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
  await until(() => agent.executions.length === 1)
  insides.refuse(true)
  await t.throwsAsync(insides.services.tasks.cancel(taskId), { message: /disk is full/ })
  insides.refuse(false)
  t.like(await insides.services.tasks.get(taskId), { status: 'RUNNING', counts: { RUNNING: 1, PENDING: 1 } })
  const cancelled = await insides.services.tasks.cancel(taskId)
  t.is(cancelled.counts.CANCELLED, 1)
  await insides.engine.complete(agent.link, 'f1', end(taskId, 143))
  t.like(await ended(insides, taskId), { status: 'CANCELLED', counts: { CANCELLED: 2 } })
})

test('hosts that a full disk kept from being skipped are skipped when there is room', async (t) => {
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
  await until(() => agent.executions.length === 1)
  // The end is on disk; the step that follows from it is refused.
  const settled = insides.engine.complete(agent.link, 'f1', end(taskId, 1))
  await until(async () => (await insides.services.tasks.get(taskId)).counts.FAILED === 1)
  insides.refuse(true)
  await settled
  await setTimeout(100)
  insides.refuse(false)
  t.like(await ended(insides, taskId), { status: 'FAILED', counts: { FAILED: 1, SKIPPED: 2 } })
  t.true(agents.slice(1).every(({ executions }) => executions.length === 0))
})

test('an end that the disk refuses is not acknowledged, and counts when it comes again', async (t) => {
  const insides = await startInsides(t)
  const [id = 0] = await fleet(insides, 1)
  const agent = noted(id)
  await insides.engine.linked(agent.link)
  const { taskId } = await insides.services.tasks.create({
    script: { content: 'exit 3' },
    target: { hostIds: [id] },
  })
  await until(() => agent.executions.length === 1)
  insides.refuse(true)
  await t.throwsAsync(insides.engine.complete(agent.link, 'f1', end(taskId, 3)), { message: /disk is full/ })
  t.deepEqual(agent.released, [])
  insides.refuse(false)
  await insides.engine.complete(agent.link, 'f2', end(taskId, 3))
  t.deepEqual(agent.released, [taskId])
  t.like(await ended(insides, taskId), { status: 'FAILED', counts: { FAILED: 1 } })
})

test('a host that a full disk kept from being given up is given up when there is room', async (t) => {
  const insides = await startInsides(t)
  const [id = 0] = await fleet(insides, 1)
  const { taskId } = await insides.services.tasks.create({
    script: { content: 'true' },
    target: { hostIds: [id] },
    queueSeconds: 1,
  })
  insides.refuse(true)
  await setTimeout(1600)
  t.is((await insides.services.tasks.get(taskId)).counts.PENDING, 1)
  insides.refuse(false)
  t.like(await ended(insides, taskId), { counts: { UNREACHABLE: 1 } })
})
