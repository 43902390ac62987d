import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { loadOrder, saveOrder } from '../../../src/agent/executions/execution-queue.ts'
import { Journal } from '../../../src/agent/executions/journal.ts'
import { startAgent } from '../../../src/agent/main.ts'
import type { Order } from '../../../src/core/protocol/orders.ts'
import { agentOptions, linkedAgent, temporaryDirectory } from '../../helpers/agents/agent.ts'

const mark = { run: 'run-1', sequence: 7 }

test('A01 P50 an agent confirms an execution before its first output, with its journal’s sequence', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const before = server.hellos[0]?.journal?.sequence ?? -1
  t.true(before >= 0)
  server.execute(agent.agentId, { taskId: 'one', script: 'echo out', mark })
  await server.completed('one')
  const about = server.messages.filter(({ payload }) => 'taskId' in payload && payload.taskId === 'one')
  const [first] = about
  t.is(first?.type, 'SCRIPT_RECEIVED')
  t.deepEqual(first?.payload, { taskId: 'one', journal: { sequence: before + 1 } })
  t.is(about.filter(({ type }) => type === 'SCRIPT_RECEIVED').length, 1)
})

test('A01 P50 an agent sends no SCRIPT_RECEIVED to a server that gives no mark', async (t) => {
  const { server, agent } = await linkedAgent(t)
  server.execute(agent.agentId, { taskId: 'one', script: 'echo out' })
  await server.completed('one')
  t.false(server.messages.some(({ type }) => type === 'SCRIPT_RECEIVED'))
})

test('A01 P50 an agent also confirms an execution that is queued', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t, { maxExecutions: 1 })
  const script = `until [ -e ${dataDir}/go ]; do sleep 0.05; done`
  server.execute(agent.agentId, { taskId: 'one', script, mark })
  server.execute(agent.agentId, { taskId: 'two', mark })
  const received = () =>
    server.messages.flatMap(({ type, payload }) =>
      type === 'SCRIPT_RECEIVED' ? [(payload as { taskId: string }).taskId] : [],
    )
  await server.until(() => received().includes('two'), 'both are received')
  t.is(server.of('two').completes.length, 0)
  writeFileSync(`${dataDir}/go`, '')
  await server.completed('two')
})

test('A01 P48 P49 each agent process has one id on all its links, and the sequence of its journal never decreases', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const { server, agent } = await linkedAgent(t, { dataDir })
  server.execute(agent.agentId, { taskId: 'one', mark })
  await server.completed('one')
  server.socket?.terminate()
  await server.linked(2)
  await agent.stop()
  const next = await startAgent(agentOptions(server, dataDir))
  t.teardown(() => next.stop())
  await server.linked(3)
  const [first, second, third] = server.hellos
  t.truthy(first?.instanceId)
  t.is(second?.instanceId, first?.instanceId)
  t.not(third?.instanceId, first?.instanceId)
  t.is(third?.storeId, first?.storeId)
  const sequences = server.hellos.map(({ journal }) => journal?.sequence ?? -1)
  t.true((sequences[0] ?? 0) < (sequences[1] ?? 0))
  t.true((sequences[1] ?? 0) <= (sequences[2] ?? 0))
  t.deepEqual(
    server.hellos.map(({ mark: said }) => said),
    [undefined, mark, mark],
  )
  await server.until(() => server.heartbeats.at(-1)?.mark?.run === mark.run, 'a heartbeat has the mark')
})

test('A02 P49 an agent that moves to another server drops the previous server’s mark and takes the new one’s', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const { server, agent } = await linkedAgent(t, { dataDir })
  server.execute(agent.agentId, { taskId: 'one', mark })
  await server.completed('one')
  await agent.stop()
  rmSync(join(dataDir, 'identity.json'))
  server.changeKey('k2')
  const beats = server.heartbeats.length
  const moved = await startAgent(agentOptions(server, dataDir))
  t.teardown(() => moved.stop())
  await server.linked(2)
  t.is(server.hellos[1]?.mark, undefined)
  t.true(server.heartbeats.length > beats)
  for (const { mark: said } of server.heartbeats.slice(beats)) t.is(said, undefined)
  const its = { run: 'run-of-another', sequence: 1 }
  server.execute(moved.agentId, { taskId: 'two', mark: its })
  await server.completed('two')
  server.socket?.terminate()
  await server.linked(3)
  t.deepEqual(server.hellos[2]?.mark, its)
})

test('A02 P49 a journal returns a mark only for the server key it was noted with', async (t) => {
  const path = join(await temporaryDirectory(t), 'journal')
  const line = { e: 'received', taskId: 'a', runMark: mark }
  writeFileSync(path, `{"e":"store","storeId":"s","format":1}\n${JSON.stringify(line)}\n`)
  const journal = new Journal(path, () => 0)
  t.is(journal.markFrom('k1'), null)
  journal.noteMark(mark, 'k1')
  t.deepEqual(journal.markFrom('k1'), mark)
  const withMac = { ...mark, mac: 'A'.repeat(43) }
  journal.noteMark(withMac, 'k1')
  t.deepEqual(journal.markFrom('k1'), withMac, 'the same mark with its MAC replaces it')
  t.is(journal.markFrom('k2'), null)
  journal.close()
})

test('A01 P48 P50 the journal’s sequence survives restarts and compaction, and decreases if an older file is restored', async (t) => {
  const path = join(await temporaryDirectory(t), 'journal')
  const open = () => new Journal(path, () => 0)
  const journal = open()
  t.is(journal.sequence, 0)
  for (const taskId of ['a', 'b']) {
    journal.append({ e: 'received', taskId })
    journal.append({ e: 'acknowledged', taskId, at: -48 * 3600_000 })
  }
  t.is(journal.sequence, 4)
  const copy = readFileSync(path)
  journal.compact()
  journal.append({ e: 'received', taskId: 'c' })
  t.is(journal.sequence, 5)
  journal.close()
  const again = open()
  t.is(again.sequence, 5)
  again.close()
  writeFileSync(path, copy)
  const back = open()
  t.is(back.sequence, 4)
  back.close()
  // Written by 0.1.0.
  writeFileSync(path, '{"e":"store","storeId":"s","format":1}\n')
  appendFileSync(path, '{"e":"received","taskId":"a"}\n{"e":"ending","taskId":"a","reason":"TIMEOUT"}\n')
  const old = open()
  t.is(old.sequence, 2)
  t.is(old.markFrom('k1'), null)
  old.close()
})

for (const [kind, kept] of [
  ['SCRIPT', { script: 'true' }],
  ['UPGRADE', { script: 'exit 126', upgrade: { version: '1.0.0', builds: [] } }],
  ['COPY', { script: '', copy: { path: '/x' } }],
  ['FETCH', { script: '', fetch: { path: '/x' } }],
] as const)
  test(`an order that an older agent kept without its kind is recognized as ${kind} by its fields`, async (t) => {
    const directory = await temporaryDirectory(t)
    const order = { taskId: 'one', params: {}, scriptType: 'BASH', ...kept }
    writeFileSync(join(directory, 'request.json'), JSON.stringify(order))
    t.like(await loadOrder(directory), { ...order, kind })
  })

test('a file order is kept with the fields of a script, so that an older agent can start it', async (t) => {
  const directory = await temporaryDirectory(t)
  const order = {
    kind: 'FETCH',
    taskId: 'one',
    timeout: 0,
    fetch: { path: '/x', kind: 'FILE', maxSize: 1 },
  } as const
  await saveOrder(directory, order as unknown as Order)
  const kept = JSON.parse(readFileSync(join(directory, 'request.json'), 'utf8'))
  t.deepEqual(kept, { ...order, script: '', params: {}, scriptType: 'BASH' })
})
