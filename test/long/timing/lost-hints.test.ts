import test from 'ava'
import { followLog } from '../../../src/server/services/logs/logs.ts'
import type { Hints } from '../../../src/server/storage/ports/hints.ts'
import { end, noted } from '../../helpers/agents/noted-link.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { execution, host, task } from '../../helpers/servers/store-records.ts'
import { until } from '../../helpers/until.ts'

const deaf: Hints = {
  publish: () => undefined,
  subscribe: () => () => undefined,
  missed: () => () => undefined,
}

test('a follower without hints still gets output, hosts and the end, each once', async (t) => {
  const { context, engine } = await startInsides(t)
  const { store } = context
  const taskId = 't'.repeat(22)
  await store.transact((tx) => {
    for (const id of [1, 2]) tx.put('hosts', host(id, `web${id}`))
  })
  const all = [1, 2].map((hostId, position) => ({ ...execution(taskId, hostId), position }))
  await engine.create(task(taskId, { hostCount: 2, queueSeconds: 3600 }), all, async () => null)
  const record = await store.get('tasks', taskId)
  if (!record) return t.fail()
  let text = ''
  const signal = new AbortController().signal
  const following = (async () => {
    for await (const batch of followLog({ ...context, hints: deaf }, record, {}, signal))
      text += String(batch)
  })()
  const agents = [noted(1), noted(2)]
  for (const { link } of agents) await engine.linked(link)
  await until('both agents have the execution', () =>
    agents.every(({ executions }) => executions.length === 1),
  )
  const [first, second] = agents
  if (!first || !second) return t.fail()
  await engine.output(first.link, 'f1', { taskId, stream: 'stdout', sequence: 0, data: 'begun' })
  await engine.complete(first.link, 'end', end(taskId, 3, 0))
  await until('the first end arrives', () => text.includes('"exitCode":3'))
  t.true(text.includes('begun'))
  await engine.complete(second.link, 'end', end(taskId, 4))
  await following
  const events = [...text.matchAll(/^event: (\w+)$/gm)].map(([, event]) => event)
  t.is(events.filter((event) => event === 'output').length, 1)
  t.true(events.filter((event) => event === 'host').length <= 3, events.join())
  t.is(events.at(-1), 'end')
})
