import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutionContext, TestFn } from 'ava'
import { RsmError } from '../../src/core/errors.ts'
import { createCarried } from '../../src/server/files/transfers.ts'
import { createLocalFacts } from '../../src/server/storage/local-facts.ts'
import { lease, type Member } from '../../src/server/storage/ports/cluster.ts'
import type { Execution } from '../../src/server/storage/ports/executions.ts'
import type { TaskRecord } from '../../src/server/storage/records/task.ts'
import { createEngine, type Engine } from '../../src/server/tasks/engine.ts'
import type { EngineDependencies } from '../../src/server/tasks/parts.ts'
import { end, noted } from '../helpers/agents/noted-link.ts'
import { mortal } from '../helpers/servers/mortal.ts'
import { execution, host, task } from '../helpers/servers/store-records.ts'
import { until } from '../helpers/until.ts'

/** Dependencies that a server shares with others of its store. */
export type ServerParts = Omit<
  EngineDependencies,
  'member' | 'facts' | 'install' | 'carried' | 'knownHosts' | 'webhookEvents' | 'maxFileSize'
>

/** The servers of one store, and their clocks. */
export interface ServersOfStore {
  /** Parts of one more server, which may have had this name before. `end`: as at the end of its process. */
  partsOf(name: string): Promise<{ parts: ServerParts; end: () => Promise<void> }>
  /** Moves time forward by milliseconds: for everything, or only on the clocks of the servers. */
  forward(time: number, whose: 'all' | 'servers'): Promise<void>
}

/** One of the servers, reduced to running tasks. */
interface Server {
  engine: Engine
  member: Member
  parts: ServerParts
  /** Task ends that it announced, results that it settled, restores that it noticed. */
  told: { tasks: string[]; results: number; restores: number }
  /** From now on none of its calls is answered. */
  kill: () => void
  /** Stops renewing its lease. */
  stand: () => void
  end: () => Promise<void>
}

export type MakeServers = (t: ExecutionContext) => Promise<ServersOfStore>

/** Milliseconds between renewals of leases. */
const renewal = 1000
/** Milliseconds after which servers have swept for silent executions. */
const silenceSweep = 5200
const minute = 60_000

/** A store with the hosts web1 to web3, and a way to start servers on it. */
async function site(t: ExecutionContext, make: MakeServers) {
  const servers = await make(t)
  const started: Server[] = []
  t.teardown(async () => {
    for (const { end } of started) await end()
  })

  async function start(name: string): Promise<Server> {
    const { parts, end } = await servers.partsOf(name)
    const { clock, log, ...mortals } = parts
    const { parts: wrapped, kill } = mortal(mortals)
    const facts = createLocalFacts()
    const told: Server['told'] = { tasks: [], results: 0, restores: 0 }
    facts.subscribe('taskEnded', ({ taskId }) => told.tasks.push(taskId))
    facts.subscribe('resultFinal', () => told.results++)
    facts.subscribe('restored', () => told.restores++)
    const member = await parts.ownership.join(name)
    const renewing = setInterval(() => void parts.ownership.renew(member).catch(() => undefined), renewal)
    const stand = () => clearInterval(renewing)
    const engine = createEngine({
      ...wrapped,
      clock,
      log,
      member,
      facts,
      carried: createCarried({ executions: wrapped.executions, facts, clock }),
      maxFileSize: 1024 * 1024,
      knownHosts: async () => [],
      webhookEvents: { endOfTask: async () => null, write() {} },
      install: () => Promise.reject(new Error('nothing is installed here')),
    })
    let isKilled = false
    let ending: Promise<void> | undefined
    const server: Server = {
      engine,
      member,
      parts,
      told,
      stand,
      kill() {
        isKilled = true
        stand()
        kill()
      },
      end: () =>
        (ending ??= (async () => {
          stand()
          // A call of a killed server never returns.
          if (!isKilled) await engine.stop()
          await end()
        })()),
    }
    if (started.length === 0)
      await parts.store.transact((tx) => {
        for (const id of [1, 2, 3]) tx.put('hosts', host(id, `web${id}`))
      })
    started.push(server)
    await engine.recover()
    return server
  }

  async function link({ engine, member, parts }: Server, hostId: number) {
    const agent = noted(hostId)
    const by = { server: member, agentId: agent.link.agentId }
    const claimed = await parts.links.claim(hostId, by, () => {
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

  /** The task as a user of this server sees it. */
  async function shown({ engine, parts }: Server, taskId: string) {
    const record = await parts.store.get('tasks', taskId)
    if (!record) throw new Error(`no task ${taskId}`)
    return { ...(await engine.summary(record)), results: await engine.results(record) }
  }

  const ended = async (server: Server, taskId: string) => {
    await until('the task ends', async () => (await shown(server, taskId)).status !== 'RUNNING')
    return shown(server, taskId)
  }
  const sent = (agent: ReturnType<typeof noted>) =>
    until('the execution is sent', () => agent.executions.length > 0)

  /** Lets the leases of all other servers expire. */
  async function outlive({ member, parts }: Server) {
    for (const { member: other, stand } of started) if (other !== member) stand()
    await servers.forward(lease + 1000, 'all')
    await parts.ownership.renew(member)
  }

  /** Lets time pass while these servers renew their leases. */
  async function pass(time: number, ...living: Server[]) {
    await servers.forward(time, 'servers')
    for (const { parts, member } of living) await parts.ownership.renew(member)
  }
  return { start, link, post, shown, ended, sent, outlive, pass }
}

/** Runs `then` after executions are marked as sent and before `take` returns. */
function changeTake({ parts }: Server, then: (taken: readonly Execution[]) => Promise<void> | void): void {
  const take = parts.executions.take.bind(parts.executions)
  parts.executions.take = async (offers) => {
    const taken = await take(offers)
    await then(taken)
    return taken
  }
}

/** Makes the next call of this kind fail, as without a store; a write has no effect. */
function failOnce<K extends string>(part: Record<K, (...given: never[]) => Promise<unknown>>, name: K): void {
  const call = part[name]
  part[name] = () => {
    part[name] = call
    return Promise.reject(new RsmError('unavailable', 'the store is unavailable'))
  }
}

const sequential = { strategy: 'SEQUENTIAL' } as const

/** Cooperation of servers on one store of any kind. */
export function enginesContract(test: TestFn, make: MakeServers): void {
  test('a task owned by one server runs step by step on agents linked to another', async (t) => {
    const { start, link, post, ended, sent } = await site(t, make)
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
    t.deepEqual(
      a.told,
      { tasks: [taskId], results: 0, restores: 0 },
      'the owner of the task announces its end',
    )
    t.deepEqual(b.told, { tasks: [], results: 2, restores: 0 }, 'the server with the link counts the results')
  })

  test('any server shows the results and output of a task, and can cancel it', async (t) => {
    const { start, link, post, shown, ended, sent } = await site(t, make)
    const [a, b] = [await start('a'), await start('b')]
    const agent = await link(b, 1)
    const taskId = await post(b, 't1', [1, 2], { queueSeconds: 3600 })
    await sent(agent)
    await b.engine.output(agent.link, 'f1', { taskId, stream: 'stdout', sequence: 0, data: 'begun' })
    const seen = await shown(a, taskId)
    t.like(seen, { status: 'RUNNING', counts: { RUNNING: 1, PENDING: 1 } })
    t.like(seen.results[0], { status: 'RUNNING', stdoutBytes: 5, error: null })
    t.regex(seen.results[1]?.error ?? '', /^its agent is not connected; waiting up to \d+ /)
    t.deepEqual(await a.engine.pendingFor(2), [taskId])
    await a.engine.cancel(taskId)
    await until('the agent gets the cancel', () => agent.cancelled.length === 1)
    await b.engine.complete(agent.link, 'end', { ...end(taskId, 143, 0), status: 'CANCELLED' })
    await a.engine.finished(taskId)
    t.like(await ended(a, taskId), { status: 'CANCELLED', counts: { CANCELLED: 2 } })
    t.deepEqual(await shown(a, taskId), await shown(b, taskId))
  })

  test('the owner of a task gives up a host that is linked to no server', async (t) => {
    const { start, link, post, ended, sent } = await site(t, make)
    const [a, b] = [await start('a'), await start('b')]
    const agent = await link(b, 1)
    const taskId = await post(a, 't1', [1, 2], { queueSeconds: 0 })
    await sent(agent)
    await b.engine.complete(agent.link, 'end', end(taskId, 0))
    t.like((await ended(b, taskId)).results, [{ status: 'SUCCESS' }, { status: 'UNREACHABLE' }])
  })

  test('tasks of a restarted server continue there or elsewhere, and tasks of other servers keep their owner', async (t) => {
    const { start, link, post, ended, sent } = await site(t, make)
    const [a, b] = [await start('a'), await start('b')]
    const first = await link(b, 1)
    for (const [server, id] of [
      [a, 'of-a'],
      [b, 'of-b'],
    ] as const)
      await post(server, id, [1, 2], sequential)
    await until('both run', () => first.executions.length === 2)
    await a.end()
    const again = await start('a')
    const owner = await b.parts.ownership.owner('of-a')
    t.true(owner?.epoch === again.member.epoch || owner?.epoch === b.member.epoch, 'owned by a living server')
    t.is((await b.parts.ownership.owner('of-b'))?.epoch, b.member.epoch)
    const second = await link(b, 2)
    for (const taskId of ['of-a', 'of-b']) await b.engine.complete(first.link, 'end', end(taskId, 0))
    await until('both continue', () => second.executions.length === 2)
    for (const taskId of ['of-a', 'of-b']) await b.engine.complete(second.link, 'end', end(taskId, 0))
    for (const taskId of ['of-a', 'of-b']) t.is((await ended(b, taskId)).status, 'SUCCESS')
    t.true(b.told.tasks.includes('of-b'))
    t.deepEqual(
      [...again.told.tasks, ...b.told.tasks].toSorted(),
      ['of-a', 'of-b'],
      'each end is announced once',
    )
    await sent(second)
    t.deepEqual([first.executions.length, second.executions.length], [2, 2])
  })

  test('tasks of a killed server continue on another one, and nothing starts twice', async (t) => {
    const { start, link, post, shown, ended, sent, outlive } = await site(t, make)
    const [a, b] = [await start('a'), await start('b')]
    const agents = [await link(b, 1), await link(b, 2)]
    const taskId = await post(a, 't1', [1, 2], sequential)
    const [first, second] = agents
    if (!first || !second) return t.fail()
    await sent(first)
    a.kill()
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

  test('an execution that a killed server had marked as sent goes to the agent once, over its next link', async (t) => {
    const { start, link, post, ended, sent, outlive } = await site(t, make)
    const [a, b] = [await start('a'), await start('b')]
    const former = await link(a, 1)
    changeTake(a, (taken) => {
      if (taken.length > 0) a.kill()
    })
    const taskId = await post(b, 't1', [1])
    await until('it is marked as sent', async () => (await b.parts.executions.counts(taskId))?.RUNNING === 1)
    const agent = await link(b, 1)
    await sent(agent)
    await outlive(b)
    await b.engine.complete(agent.link, 'end', end(taskId, 0))
    t.is((await ended(b, taskId)).status, 'SUCCESS')
    t.deepEqual([former.executions.length, agent.executions.length], [0, 1])
  })

  test('a server that stalls past its lease takes no more steps of the tasks that it lost', async (t) => {
    const { start, link, post, ended, sent, outlive } = await site(t, make)
    const [a, b] = [await start('a'), await start('b')]
    const agents = [await link(b, 1), await link(a, 2), await link(b, 3)]
    const taskId = await post(a, 't1', [1, 2, 3], sequential)
    const [first] = agents
    if (!first) return t.fail()
    await sent(first)
    await outlive(b)
    await until(
      'another one owns the task',
      async () => (await b.parts.ownership.owner(taskId))?.name === 'b',
    )
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

  test('A02 a restore that two servers notice is noted and announced once, with the marks that both received', async (t) => {
    const { start } = await site(t, make)
    const servers = [await start('a'), await start('b')]
    for (const [at, { engine, parts }] of servers.entries()) {
      const agentId = `agent-${at + 1}`
      const mark = parts.keys.authenticated(agentId, { run: `unknown-${at}`, sequence: 9 })
      engine.judgeMark({ hostId: at + 1, agentId }, mark)
    }
    const [first] = servers
    const notes = async () =>
      ((await first?.parts.store.query('runs'))?.items ?? []).flatMap(({ restore }) => restore ?? [])
    await until('both are noted', async () => (await notes())[0]?.strangers.length === 2)
    const [note, ...others] = await notes()
    t.deepEqual([note?.confirmedAt, others], [null, []])
    t.is(
      servers.reduce((sum, { told }) => sum + told.restores, 0),
      1,
    )
    for (const { engine } of servers) t.is((await engine.restore())?.agentId, note?.agentId)
    const [, other] = servers
    t.like(await other?.engine.confirmRestore(false), { tasks: 0 })
    for (const { engine } of servers) t.is(await engine.restore(), null)
  })

  test('a link that closes takes no more executions, and returns once the one that it took', async (t) => {
    const { start, link, post, ended, sent } = await site(t, make)
    const a = await start('a')
    const agent = await link(a, 1)
    agent.state.up = false
    const isOpen = { value: true }
    Object.defineProperty(agent.link, 'isOpen', { get: () => isOpen.value })
    let takes = 0
    changeTake(a, (taken) => {
      if (taken[0]?.hostId !== 1) return
      takes++
      isOpen.value = false
    })
    const other = await link(a, 2)
    const taskId = await post(a, 't1', [1], { queueSeconds: 3600 })
    await until(
      'it waits again',
      async () => takes > 0 && (await a.parts.executions.counts(taskId))?.PENDING === 1,
    )
    const next = await post(a, 't2', [2])
    await sent(other)
    await a.engine.complete(other.link, 'end', end(next, 0))
    await ended(a, next)
    t.is(takes, 1)
  })

  for (const [what, fail] of [
    ['task', ({ parts }: Server) => failOnce(parts.store, 'get')],
    ['execution', ({ parts }: Server) => failOnce(parts.executions, 'find')],
  ] as const)
    test(`an execution marked as sent is pending again if its ${what} cannot be read, and is sent once`, async (t) => {
      const { start, link, post, ended, sent } = await site(t, make)
      const a = await start('a')
      const agent = await link(a, 1)
      let takes = 0
      changeTake(a, (taken) => {
        if (taken.length > 0 && ++takes === 1) fail(a)
      })
      const taskId = await post(a, 't1', [1])
      await sent(agent)
      await a.engine.complete(agent.link, 'end', end(taskId, 0))
      t.is((await ended(a, taskId)).status, 'SUCCESS')
      t.deepEqual([takes, agent.executions.length], [2, 1])
    })

  test('a step that could not be written is retried, even if stored executions cannot be read at first', async (t) => {
    const { start, link, post, ended, sent } = await site(t, make)
    const a = await start('a')
    const [first, second] = [await link(a, 1), await link(a, 2)]
    const taskId = await post(a, 't1', [1, 2], sequential)
    await sent(first)
    failOnce(a.parts.executions, 'transition')
    failOnce(a.parts.executions, 'page')
    await a.engine.complete(first.link, 'end', end(taskId, 0))
    await sent(second)
    await a.engine.complete(second.link, 'end', end(taskId, 0))
    t.is((await ended(a, taskId)).status, 'SUCCESS')
    t.deepEqual([first.executions.length, second.executions.length], [1, 1])
  })

  test('an execution that ends on its way to an agent without support for cancel is not sent', async (t) => {
    const { start, link, post, ended, sent } = await site(t, make)
    const a = await start('a')
    const agent = await link(a, 1)
    Object.assign(agent.link, { hello: null })
    changeTake(a, async (taken) => {
      if (taken[0]?.taskId === 't1') await a.engine.cancel('t1')
    })
    t.is((await ended(a, await post(a, 't1', [1]))).status, 'CANCELLED')
    await post(a, 't2', [1])
    await sent(agent)
    t.deepEqual(
      agent.executions.map(({ taskId }) => taskId),
      ['t2'],
    )
  })

  test('a host whose agent never says HELLO is given up all the same', async (t) => {
    const { start, post, ended } = await site(t, make)
    const a = await start('a')
    const by = { server: a.member, agentId: 'agent-1' }
    const taskId = await post(a, 't1', [1], { queueSeconds: 1 })
    const flapping = setInterval(
      () => void a.parts.links.claim(1, by, () => undefined).catch(() => undefined),
      100,
    )
    t.teardown(() => clearInterval(flapping))
    t.like((await ended(a, taskId)).results, [{ status: 'UNREACHABLE' }])
  })
}

/** Suite of its own: its test takes several sweeps for silent executions. */
export function silentEnginesContract(test: TestFn, make: MakeServers): void {
  test('an execution is LOST by silence only once no living server has the link of its host', async (t) => {
    const { start, link, post, ended, sent, shown, outlive, pass } = await site(t, make)
    const [a, b] = [await start('a'), await start('b')]
    const agent = await link(b, 1)
    const taskId = await post(a, 't1', [1], { timeout: 60 })
    await sent(agent)
    const isRunning = async () => {
      await delay(silenceSweep)
      return (await shown(a, taskId)).results[0]?.status === 'RUNNING'
    }
    await pass(60 * minute, a, b)
    t.true(await isRunning())
    await outlive(a)
    t.true(await isRunning())
    await pass(11 * minute, a)
    const { results } = await ended(a, taskId)
    t.is(results[0]?.status, 'LOST')
    t.regex(results[0]?.error ?? '', /^no report for 6\d\d s$/)
  })
}
