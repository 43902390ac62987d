import { setTimeout } from 'node:timers/promises'
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

async function ended({ services }: Insides, taskId: string): Promise<Task> {
  await until('the task ends', async () => (await services.tasks.get(taskId)).status !== 'RUNNING')
  return services.tasks.get(taskId)
}

test('while a full disk refuses writes nothing pending is retried needlessly; sending resumes once there is room', async (t) => {
  const insides = await startInsides(t)
  const [id = 0] = await fleet(insides, 1)
  const agent = noted(id)
  const { taskId } = await insides.services.tasks.create({
    script: { content: 'true' },
    target: { hostIds: [id] },
    queueSeconds: 3_600,
  })
  await until('the execution waits for its host', async () => (await insides.engine.load()).waiting === 1)
  const { store } = insides.context
  const transact = store.transact.bind(store)
  let tried = 0
  store.transact = (work) => {
    tried += 1
    return transact(work)
  }
  insides.refuse(true)
  await insides.engine.linked(agent.link)
  // The time of several sweeps.
  await setTimeout(1_500)
  // Once for the link, and once if the host's turn was still being written when the link came.
  t.true(tried <= 2, `${tried} times`)
  insides.refuse(false)
  await until('the execution is sent', () => agent.executions.length === 1)
  await insides.engine.complete(agent.link, 'f1', end(taskId, 0))
  t.like(await ended(insides, taskId), { status: 'SUCCESS' })
})

test("a task's end that cannot be written is retried about once a second, however long", async (t) => {
  const insides = await startInsides(t)
  const [id = 0] = await fleet(insides, 1)
  const agent = noted(id)
  await insides.engine.linked(agent.link)
  const { taskId } = await insides.services.tasks.create({
    script: { content: 'true' },
    target: { hostIds: [id] },
  })
  await until('the execution is sent', () => agent.executions.length === 1)
  const write = insides.results.write.bind(insides.results)
  let tried = 0
  insides.results.write = async () => {
    tried += 1
    throw new Error('no room')
  }
  await insides.engine.complete(agent.link, 'f1', end(taskId, 0))
  await setTimeout(5_500)
  insides.results.write = write
  t.true(tried >= 3 && tried <= 12, `${tried} times`)
  t.like(await ended(insides, taskId), { status: 'SUCCESS' })
})
