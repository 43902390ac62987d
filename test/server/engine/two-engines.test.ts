import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { openEmbedded } from '../../../src/server/embedded/open.ts'
import { createEngine, type Engine } from '../../../src/server/engine/engine.ts'
import { createLocalFacts } from '../../../src/server/local-facts.ts'
import { createLog } from '../../../src/server/log.ts'
import type { Data } from '../../../src/server/seams/data.ts'
import { lease, type Member } from '../../../src/server/seams/ownership.ts'
import type { TaskRecord } from '../../../src/server/seams/records/task.ts'
import { end, noted } from '../../helpers/agents/noted-link.ts'
import { ShiftedClock } from '../../helpers/faults/shifted-clock.ts'
import { mortal } from '../../helpers/servers/mortal.ts'
import { execution, host, task } from '../../helpers/servers/store-records.ts'
import { until } from '../../helpers/until.ts'

/** One of the servers of a data directory, as far as it runs tasks. */
interface Server {
  engine: Engine
  member: Member
  /** Tasks whose end it has told, results that it has ended, and restores that it has noticed. */
  told: { tasks: string[]; results: number; restores: number }
}

/** An opened data directory with the hosts web1 to web3, and a way to start servers on it. */
async function site(t: ExecutionContext) {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-engines-'))
  const clock = new ShiftedClock()
  const log = createLog('ERROR')
  const data = await openEmbedded(directory, {
    heartbeatInterval: 30,
    metrics: { journalSynced: () => undefined, outputSynced: () => undefined },
    keysDirectory: join(directory, 'keys'),
    newKeys: false,
    clock,
    log,
    onFatal(error) {
      throw error
    },
  })
  const engines = new Set<Engine>()
  t.teardown(async () => {
    for (const engine of engines) await engine.stop()
    await data.close()
    await rm(directory, { recursive: true, force: true })
  })
  await data.store.transact((tx) => {
    for (const id of [1, 2, 3]) tx.put('hosts', host(id, `web${id}`))
  })

  async function start(name: string, parts: Data = data): Promise<Server> {
    const facts = createLocalFacts()
    const told: Server['told'] = { tasks: [], results: 0, restores: 0 }
    facts.subscribe('taskEnded', ({ taskId }) => told.tasks.push(taskId))
    facts.subscribe('resultFinal', () => told.results++)
    facts.subscribe('restored', () => told.restores++)
    const member = await data.ownership.join(name)
    const engine = createEngine({
      ...parts,
      member,
      facts,
      clock,
      log,
      knownHosts: async () => [],
      install: () => Promise.reject(new Error('nothing is installed here')),
    })
    await engine.recover()
    if (parts === data) engines.add(engine)
    return { engine, member, told }
  }

  /** Links an agent to a server; `names` are tasks that it says it has. */
  async function link({ engine, member }: Server, hostId: number, names: string[] = []) {
    const agent = noted(hostId)
    for (const taskId of names) agent.link.hello?.tasks.push({ taskId, state: 'RUNNING', lastSequence: -1 })
    const by = { server: member, agentId: agent.link.agentId }
    const claimed = await data.links.claim(hostId, by, () => {
      agent.state.up = false
      engine.unlinked(agent.link)
    })
    await engine.linked(Object.assign(agent.link, claimed && { claim: claimed.claim }))
    return agent
  }

  async function post({ engine }: Server, id: string, hostIds: number[], more: Partial<TaskRecord> = {}) {
    const all = hostIds.map((hostId, position) => ({ ...execution(id, hostId), position }))
    await engine.create(task(id, { hostCount: all.length, ...more }), all, async () => null)
    return id
  }

  /** As a user sees the task at one of the servers. */
  async function shown({ engine }: Server, taskId: string) {
    const record = await data.store.get('tasks', taskId)
    if (!record) throw new Error(`no task ${taskId}`)
    return { ...(await engine.summary(record)), results: await engine.results(record) }
  }

  const ended = async (server: Server, taskId: string) => {
    await until('the task ends', async () => (await shown(server, taskId)).status !== 'RUNNING')
    return shown(server, taskId)
  }
  const sent = (agent: ReturnType<typeof noted>) =>
    until('the execution is sent', () => agent.executions.length > 0)

  /** The lease of all but this one runs out. */
  async function outlive({ member }: Server) {
    clock.forward((lease + 1000) / 1000)
    await data.ownership.renew(member)
  }
  return { data, start, link, post, shown, ended, sent, outlive }
}

const sequential = { strategy: 'SEQUENTIAL' } as const

test('a task of one server runs on agents that are linked to another, step by step', async (t) => {
  const { start, link, post, ended, sent } = await site(t)
  const [a, b] = [await start('a'), await start('b')]
  const agents = [await link(b, 1), await link(b, 2)]
  const taskId = await post(a, 't1', [1, 2], sequential)
  for (const agent of agents) {
    await sent(agent)
    await b.engine.complete(agent.link, 'end', end(taskId, 0))
    t.deepEqual(agent.released, [taskId])
  }
  t.like(await ended(a, taskId), { status: 'SUCCESS', counts: { SUCCESS: 2, UNREACHABLE: 0 } })
  t.deepEqual(
    agents.map(({ executions }) => executions.length),
    [1, 1],
  )
  t.deepEqual(a.told, { tasks: [taskId], results: 0, restores: 0 }, 'who owns the task tells its end')
  t.deepEqual(b.told, { tasks: [], results: 2, restores: 0 }, 'who has the link counts the results')
})

test('asked of any server a task shows its results and output, and can be cancelled', async (t) => {
  const { start, link, post, shown, ended, sent } = await site(t)
  const [a, b] = [await start('a'), await start('b')]
  const agent = await link(b, 1)
  const taskId = await post(b, 't1', [1, 2], { queueSeconds: 3600 })
  await sent(agent)
  await b.engine.output(agent.link, 'f1', { taskId, stream: 'stdout', sequence: 0, data: 'begun' })
  const seen = await shown(a, taskId)
  t.like(seen, { status: 'RUNNING', counts: { RUNNING: 1, PENDING: 1 } })
  t.like(seen.results[0], { status: 'RUNNING', stdoutBytes: 5, error: null })
  t.regex(seen.results[1]?.error ?? '', /^agent not connected/)
  t.deepEqual(await a.engine.pendingFor(2), [taskId])
  await a.engine.cancel(taskId)
  await until('the agent hears of the cancel', () => agent.cancelled.length === 1)
  await b.engine.complete(agent.link, 'end', { ...end(taskId, 143, 0), status: 'CANCELLED' })
  await a.engine.finished(taskId)
  t.like(await ended(a, taskId), { status: 'CANCELLED', counts: { CANCELLED: 2 } })
  t.deepEqual(await shown(a, taskId), await shown(b, taskId))
})

test('a host that no server has the link of is given up by the owner of the task', async (t) => {
  const { start, link, post, ended, sent } = await site(t)
  const [a, b] = [await start('a'), await start('b')]
  const agent = await link(b, 1)
  const taskId = await post(a, 't1', [1, 2], { queueSeconds: 0 })
  await sent(agent)
  await b.engine.complete(agent.link, 'end', end(taskId, 0))
  t.like((await ended(b, taskId)).results, [{ status: 'SUCCESS' }, { status: 'UNREACHABLE' }])
})

test('a server that is started again takes up its own tasks and leaves those of others alone', async (t) => {
  const { data, start, link, post, ended, sent } = await site(t)
  const [a, b] = [await start('a'), await start('b')]
  const first = await link(b, 1)
  for (const [server, id] of [
    [a, 'of-a'],
    [b, 'of-b'],
  ] as const)
    await post(server, id, [1, 2], sequential)
  await until('both run', () => first.executions.length === 2)
  await a.engine.stop()
  const again = await start('a')
  t.is((await data.ownership.owner('of-a'))?.epoch, again.member.epoch)
  t.is((await data.ownership.owner('of-b'))?.epoch, b.member.epoch)
  const second = await link(b, 2)
  for (const taskId of ['of-a', 'of-b']) await b.engine.complete(first.link, 'end', end(taskId, 0))
  await until('both go on', () => second.executions.length === 2)
  for (const taskId of ['of-a', 'of-b']) await b.engine.complete(second.link, 'end', end(taskId, 0))
  for (const taskId of ['of-a', 'of-b']) t.is((await ended(b, taskId)).status, 'SUCCESS')
  t.deepEqual([again.told.tasks, b.told.tasks], [['of-a'], ['of-b']])
  await sent(second)
  t.deepEqual([first.executions.length, second.executions.length], [2, 2])
})

test('tasks of a server that was killed go on with another one, and nothing starts twice', async (t) => {
  const { data, start, link, post, shown, ended, sent, outlive } = await site(t)
  const { parts, kill } = mortal(data)
  const [a, b] = [await start('a', parts), await start('b')]
  const agents = [await link(b, 1), await link(b, 2)]
  const taskId = await post(a, 't1', [1, 2], sequential)
  const [first, second] = agents
  if (!first || !second) return t.fail()
  await sent(first)
  kill()
  await b.engine.complete(first.link, 'end', end(taskId, 0))
  t.like(await shown(b, taskId), { status: 'RUNNING', counts: { SUCCESS: 1, PENDING: 1 } })
  await outlive(b)
  await sent(second)
  await b.engine.complete(second.link, 'end', end(taskId, 0))
  t.is((await ended(b, taskId)).status, 'SUCCESS')
  t.deepEqual(
    agents.map(({ executions }) => executions.length),
    [1, 1],
  )
  t.deepEqual(b.told.tasks, [taskId])
})

test('what a killed server had marked as sent goes to the agent once it links elsewhere, once', async (t) => {
  const { data, start, link, post, ended, sent, outlive } = await site(t)
  const { parts, kill } = mortal(data)
  const [a, b] = [await start('a', parts), await start('b')]
  const former = await link(a, 1)
  const take = data.executions.take.bind(data.executions)
  data.executions.take = async (offers) => {
    const taken = await take(offers)
    if (taken.length > 0) kill()
    return taken
  }
  const taskId = await post(b, 't1', [1])
  await until('it is marked as sent', async () => (await data.executions.counts(taskId))?.RUNNING === 1)
  const agent = await link(b, 1)
  await sent(agent)
  await outlive(b)
  await b.engine.complete(agent.link, 'end', end(taskId, 0))
  t.is((await ended(b, taskId)).status, 'SUCCESS')
  t.deepEqual([former.executions.length, agent.executions.length], [0, 1])
})

test('a server that stood still past its lease carries out no more steps of the tasks that it has lost', async (t) => {
  const { data, start, link, post, ended, sent, outlive } = await site(t)
  const [a, b] = [await start('a'), await start('b')]
  const agents = [await link(b, 1), await link(a, 2), await link(b, 3)]
  const taskId = await post(a, 't1', [1, 2, 3], sequential)
  const [first] = agents
  if (!first) return t.fail()
  await sent(first)
  await outlive(b)
  await until('another one owns the task', async () => (await data.ownership.owner(taskId))?.name === 'b')
  for (const [at, agent] of agents.entries()) {
    await sent(agent)
    await (at === 1 ? a : b).engine.complete(agent.link, 'end', end(taskId, 0))
  }
  t.is((await ended(a, taskId)).status, 'SUCCESS')
  t.deepEqual(
    agents.map(({ executions }) => executions.length),
    [1, 1, 1],
  )
  t.deepEqual([a.told.tasks, b.told.tasks], [[], [taskId]])
})

test('A02 a restore that two servers notice is noted and told once, with what both have heard', async (t) => {
  const { data, start } = await site(t)
  const servers = [await start('a'), await start('b')]
  for (const [at, { engine }] of servers.entries())
    engine.witnessed({ hostId: at + 1, agentId: `agent-${at + 1}` }, { run: `unknown-${at}`, sequence: 9 })
  const notes = async () => (await data.store.query('runs')).items.flatMap(({ restore }) => restore ?? [])
  await until('both are noted', async () => (await notes())[0]?.strangers.length === 2)
  t.like(await notes(), { length: 1, 0: { agentId: 'agent-1', confirmedAt: null } })
  t.is(
    servers.reduce((sum, { told }) => sum + told.restores, 0),
    1,
  )
  for (const { engine } of servers) t.like(await engine.restore(), { agentId: 'agent-1' })
})

test('a link that closes takes nothing more, and gives back once what it took', async (t) => {
  const { data, start, link, post } = await site(t)
  const a = await start('a')
  const agent = await link(a, 1)
  agent.state.up = false
  const isOpen = { value: true }
  Object.defineProperty(agent.link, 'isOpen', { get: () => isOpen.value })
  let takes = 0
  const take = data.executions.take.bind(data.executions)
  data.executions.take = async (offers) => {
    takes++
    const taken = await take(offers)
    isOpen.value = false
    return taken
  }
  const taskId = await post(a, 't1', [1], { queueSeconds: 3600 })
  await until(
    'it waits again',
    async () => takes > 0 && (await data.executions.counts(taskId))?.PENDING === 1,
  )
  await delay(300)
  t.is(takes, 1)
})

test('what ends while it is on its way to an agent that knows no cancel is not sent', async (t) => {
  const { data, start, link, post, ended } = await site(t)
  const a = await start('a')
  const agent = await link(a, 1)
  Object.assign(agent.link, { hello: null })
  const take = data.executions.take.bind(data.executions)
  data.executions.take = async (offers) => {
    const taken = await take(offers)
    for (const { taskId } of taken) await a.engine.cancel(taskId)
    return taken
  }
  t.is((await ended(a, await post(a, 't1', [1]))).status, 'CANCELLED')
  await delay(100)
  t.is(agent.executions.length, 0)
})

test('an agent that never says HELLO does not keep its host from being given up', async (t) => {
  const { data, start, post, ended } = await site(t)
  const a = await start('a')
  const by = { server: a.member, agentId: 'agent-1' }
  const taskId = await post(a, 't1', [1], { queueSeconds: 1 })
  const flapping = setInterval(() => void data.links.claim(1, by, () => undefined), 100)
  t.teardown(() => clearInterval(flapping))
  t.like((await ended(a, taskId)).results, [{ status: 'UNREACHABLE' }])
})
