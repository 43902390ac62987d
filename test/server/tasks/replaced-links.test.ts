import { setImmediate } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import type { AgentLink } from '../../../src/server/storage/ports/cluster.ts'
import { end, noted } from '../../helpers/agents/noted-link.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { until } from '../../helpers/until.ts'

/** An execution running over a first link, on a disk whose appends end when the test says so. */
async function running(t: ExecutionContext) {
  const { services, engine, context } = await startInsides(t)
  const appends: { sequence: number; end(error?: Error): void }[] = []
  context.outputs.append = (_, { sequence }) =>
    new Promise((resolve, reject) => {
      appends.push({ sequence, end: (error) => (error ? reject(error) : resolve()) })
    })
  const { id } = await services.hosts.create({ hostname: 'web1', ip: '192.0.2.1' })
  const first = noted(id)
  await engine.linked(first.link)
  const { taskId } = await services.tasks.create({ script: { content: 'x' }, target: { hostIds: [id] } })
  await until('the execution is sent', () => first.executions.length === 1)
  /** The link of the reconnecting agent, which names its task. */
  const relink = async () => {
    const made = noted(id)
    made.link.hello?.tasks.push({ taskId, state: 'RUNNING', lastSequence: 1 })
    await engine.linked(made.link)
    return made
  }
  /** Resolves when the pieces are processed or dropped. */
  const send = (link: AgentLink, ...sequences: number[]) => {
    for (const sequence of sequences)
      void engine.output(link, `f${sequence}`, { taskId, stream: 'stdout', sequence, data: `${sequence};` })
    return setImmediate()
  }
  const complete = (link: AgentLink) => engine.complete(link, 'end', end(taskId, 0, 1))
  const sequences = () => appends.map(({ sequence }) => sequence)
  const result = async () => (await services.tasks.get(taskId)).results[0]
  return { first, relink, send, complete, appends, sequences, result, engine }
}

const full = new Error('the disk is full')

test('output still being written is not accepted again when output after it was refused', async (t) => {
  const { first, relink, send, complete, appends, sequences, result } = await running(t)
  await send(first.link, 0, 1)
  first.state.up = false
  const second = await relink()
  appends[1]?.end(full)
  await until('the link is closed', () => second.closed.length === 1)
  const third = await relink()
  await send(third.link, 0, 1)
  t.deepEqual(sequences(), [0, 1, 1])
  appends[0]?.end()
  appends[2]?.end()
  await complete(third.link)
  t.like(await result(), { status: 'SUCCESS', stdoutBytes: 4, outputComplete: true })
})

test('a refused append closes the current link, so that the agent returns to the stored output', async (t) => {
  const { first, relink, send, complete, appends, sequences, result } = await running(t)
  await send(first.link, 0, 1)
  first.state.up = false
  const second = await relink()
  await send(second.link, 0, 1)
  const early = complete(second.link)
  for (const append of appends) append.end(full)
  await early
  t.deepEqual(second.closed, [1013])
  t.like(await result(), { status: 'RUNNING', stdoutBytes: 0 })
  const third = await relink()
  t.deepEqual(third.acknowledged, [-1])
  await send(third.link, 0, 1)
  t.deepEqual(sequences(), [0, 1, 0, 1])
  for (const append of appends) append.end()
  await complete(third.link)
  t.deepEqual(third.closed, [])
  t.like(await result(), { status: 'SUCCESS', stdoutBytes: 4, outputComplete: true })
})

test('a refusal with an earlier append does not affect output accepted since', async (t) => {
  const { first, relink, send, appends, sequences } = await running(t)
  await send(first.link, 0, 1)
  appends[0]?.end(full)
  await until('the link is closed', () => first.closed.length === 1)
  const second = await relink()
  await send(second.link, 0, 1)
  appends[1]?.end(full)
  await setImmediate()
  await send(second.link, 0, 1)
  t.deepEqual(sequences(), [0, 1, 0, 1])
  t.deepEqual(second.closed, [])
})

test('output of a replaced link that becomes durable is acknowledged over the current link', async (t) => {
  const { first, relink, send, appends } = await running(t)
  await send(first.link, 0, 1)
  first.state.up = false
  const second = await relink()
  await send(second.link, 0, 1)
  await until('both are answered as not stored yet', () => second.acknowledged.length === 2)
  for (const append of appends) append.end()
  await until('the acknowledgement', () => second.acknowledged.at(-1) === 1)
  t.pass()
})
