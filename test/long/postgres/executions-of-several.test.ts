import type { ExecutionContext } from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { isFinal, type ResultStatus } from '../../../src/core/tasks/task.ts'
import {
  asBegun,
  asLost,
  asRefused,
  asReturned,
  asSkipped,
  asUnreachable,
} from '../../../src/server/storage/executions/transitions.ts'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import { type LinkClaim, lease, type Member } from '../../../src/server/storage/ports/cluster.ts'
import type { Execution, Offer } from '../../../src/server/storage/ports/executions.ts'
import type { Hints } from '../../../src/server/storage/ports/hints.ts'
import type { TaskRecord } from '../../../src/server/storage/records/task.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { type ExecutingServer, executingServer } from '../../helpers/servers/shared-executions.ts'
import { sharedStore } from '../../helpers/servers/shared-store.ts'
import { execution, task } from '../../helpers/servers/store-records.ts'
import { until } from '../../helpers/until.ts'

const postgres = sharedPostgres()
const at = '2026-01-01T00:00:00.000Z'
const agent = { agentStoreId: 'journal', agentInstanceId: null, agentJournal: null }
const offer = (claim: LinkClaim, capacity = 16): Offer => ({ claim, capacity, agent })
const none = async () => null
const why = (...ids: string[]) => ids.map((id) => ({ id, error: 'why' }))
const statuses = (changed: readonly Execution[]) => changed.map(({ id, status }) => `${id} ${status}`)
const elsewhere = { instanceOf: RsmError, code: 'unavailable' }
const end = (taskId: string, exitCode = 0) => ({
  complete: { taskId, exitCode, duration: 1, startedAt: at, completedAt: at },
  incomplete: false,
})
const piece = (taskId: string, sequence: number, data: string) =>
  ({ taskId, stream: 'stdout', sequence, data }) as const

interface Server extends ExecutingServer {
  member: Member
  link: (hostId: number) => Promise<LinkClaim>
  /** Stops renewing the lease, as a suspended server does. */
  stand: () => void
}

/** Servers of one store. They receive each other's hints only if `hints` is given. */
async function site(t: ExecutionContext, names: readonly string[], hints?: Hints) {
  const shared = await sharedStore(await postgres, (ending) => t.teardown(ending))
  const servers: Server[] = []
  for (const name of names) {
    const server = await executingServer(shared, name, hints ?? createLocalHints())
    t.teardown(() => server.close())
    const member = await server.ownership.join(name)
    const link = async (hostId: number) => {
      // Links that change this often would count as two agents with one identity.
      await shared.ask('api', `update rsm.links set replaced_at = '{}'`)
      const by = { server: member, agentId: `agent-${hostId}` }
      const claimed = await server.links.claim(hostId, by, () => undefined)
      if (!claimed) throw new Error('the claim was refused')
      return claimed.claim
    }
    const renewing = setInterval(() => void server.ownership.renew(member).catch(() => undefined), 2000)
    const stand = () => clearInterval(renewing)
    t.teardown(stand)
    servers.push({ ...server, member, link, stand })
  }
  return { shared, servers }
}

/** A task of this server on these hosts; all its executions are due. */
async function post(
  { ownership, executions, member }: Server,
  hostIds: readonly number[],
  more: Partial<TaskRecord> = {},
  id = 't1',
) {
  await ownership.claim(member, [id])
  const all = hostIds.map((hostId, position) => ({ ...execution(id, hostId), position, dueAt: at }))
  await executions.create(task(id, { hostCount: all.length, ...more }), all, none)
}

/** Waits for the time of this number of statements. */
async function pause({ database }: Server, statements: number): Promise<void> {
  for (let n = 0; n < statements; n++) await database.ask('write', 'select')
}

async function textOf({ outputs }: Server, taskId: string): Promise<string> {
  let text = ''
  for (let after = 0; ; ) {
    const read = await outputs.read(taskId, { after, limit: 500 })
    if (read.next === after) return text
    after = read.next
    text += read.entries.map(({ data }) => data).join('')
  }
}

test('a server that has lost a task to another server writes nothing to it', async (t) => {
  const { shared, servers } = await site(t, ['a', 'b'])
  const [a, b] = servers as [Server, Server]
  await post(a, [1, 2, 3])
  const claim = await b.link(1)
  t.deepEqual(statuses(await b.executions.take([offer(claim)])), ['t1/1 RUNNING'])
  a.stand()
  await shared.forward(lease + 1000)
  t.true(await b.ownership.renew(b.member))
  t.deepEqual(await b.ownership.claim(b.member, ['t1']), ['t1'])
  const steps = [
    () => a.executions.transition(asSkipped(a.member, ['t1/2'], 'why')),
    () => a.executions.transition(asUnreachable(a.member, why('t1/2'))),
    () => a.executions.transition(asLost({ owner: a.member }, why('t1/1'))),
    () => a.executions.transition(asBegun(a.member, ['t1/2'])),
  ]
  for (const step of steps) t.deepEqual(await step(), [])
  await a.executions.pause(a.member, 't1', at)
  t.is((await b.store.get('tasks', 't1'))?.pauseUntil, null)
  await b.executions.transition(asUnreachable(b.member, why('t1/2', 't1/3')))
  await b.executions.settle('t1/1', end('t1'))
  t.is(await a.executions.finish(a.member, 't1'), null)
  t.like(await b.executions.finish(b.member, 't1'), { counts: { SUCCESS: 1, UNREACHABLE: 2 } })
  t.deepEqual(await a.executions.page('t1'), [])
})

test('a server that has lost a link to another server writes nothing for it: no start, no output, no end', async (t) => {
  const { servers } = await site(t, ['a', 'b'])
  const [a, b] = servers as [Server, Server]
  await post(a, [1])
  await post(a, [1], {}, 't2')
  const former = await a.link(1)
  t.deepEqual(statuses(await a.executions.take([offer(former, 1)])), ['t1/1 RUNNING'])
  t.is(await a.executions.append('t1/1', piece('t1', 0, 'one;'), undefined, true), 0)
  const claim = await b.link(1)
  t.deepEqual(await a.executions.take([offer(former, 2)]), [])
  t.deepEqual(await a.executions.transition(asLost({ link: former }, why('t1/1'))), [])
  // Until the takeover, the agent's messages may still arrive over the previous link.
  t.is(await a.executions.append('t1/1', piece('t1', 1, 'two;'), undefined, true), 1)
  const [sent] = await b.executions.takeOver(claim, new Set())
  t.like(sent?.output, { storedSequence: 1, stdoutBytes: 8 })
  t.deepEqual(await a.executions.takeOver(former, new Set()), [])
  t.deepEqual(await a.executions.transition(asReturned(former, ['t1/1'])), [])
  t.deepEqual(await a.executions.transition(asRefused(former, why('t1/1'))), [])
  await t.throwsAsync(a.executions.append('t1/1', piece('t1', 2, 'wrong'), undefined, true), elsewhere)
  await t.throwsAsync(a.executions.append('t1/1', piece('t1', 3, 'wrong'), undefined, true), elsewhere)
  await t.throwsAsync(a.executions.settle('t1/1', end('t1', 9)), elsewhere)
  t.is(await b.executions.append('t1/1', piece('t1', 2, 'three'), undefined, true), 2)
  t.deepEqual(statuses(await b.executions.settle('t1/1', end('t1', 3))), ['t1/1 FAILED'])
  t.deepEqual(await a.executions.settle('t1/1', end('t1', 9)), [], 'the execution has ended')
  t.is(await textOf(a, 't1'), 'one;two;three')
  t.deepEqual(statuses(await b.executions.take([offer(claim, 1)])), ['t2/1 RUNNING'])
})

test('an execution marked for a link while a newer link claims the host is seen by that link or never marked', async (t) => {
  const { servers } = await site(t, ['a', 'b'])
  const [a, b] = servers as [Server, Server]
  for (let n = 0; n < 20; n++) {
    const id = `t${n}`
    await post(a, [1], {}, id)
    const former = await a.link(1)
    await a.executions.takeOver(former, new Set())
    const taking = pause(a, n % 5).then(() => a.executions.take([offer(former)]))
    const claim = await b.link(1)
    const seen = (await b.executions.takeOver(claim, new Set())).map((running) => running.execution.id)
    const marked = (await taking).map((one) => one.id)
    t.deepEqual(seen, marked)
    const taken = await b.executions.take([offer(claim)])
    t.is(seen.length + taken.length, 1)
    await b.executions.settle(`${id}/1`, end(id))
  }
})

test('output that arrives over two links of a host is stored once, in order and complete', async (t) => {
  const { servers } = await site(t, ['a', 'b'])
  await post(servers[0] as Server, [1])
  const whole = Array.from({ length: 300 }, (_, n) => `${n};`)
  let isMarked = false
  // The agent keeps changing servers, and output sent over an earlier link may still be in transit.
  for (let turn = 0; ; turn++) {
    const server = servers[turn % 2] as Server
    const { executions, link } = server
    const claim = await link(1)
    if (!isMarked) await executions.take([offer(claim)])
    isMarked = true
    const [running] = await executions.takeOver(claim, new Set())
    const from = (running?.output.storedSequence ?? -1) + 1
    if (from === whole.length) break
    for (const [n, data] of whole.slice(from, from + 40).entries()) {
      const appending = executions.append('t1/1', piece('t1', from + n, data), undefined, true)
      appending.catch(() => undefined)
      if (n % 10 === turn % 10) await pause(server, 1)
    }
  }
  t.is(await textOf(servers[0] as Server, 't1'), whole.join(''))
})

test('a cursor in output written by three servers misses nothing and repeats nothing', async (t) => {
  const { servers } = await site(t, ['a', 'b', 'c'])
  const [reader] = servers as [Server]
  await post(reader, [1, 2, 3])
  const pieces = 200
  let isWriting = true
  const writing = servers.map(async ({ executions, link }, at) => {
    const hostId = at + 1
    await executions.take([offer(await link(hostId))])
    for (let n = 0; n < pieces; n += 5)
      await Promise.all(
        [0, 1, 2, 3, 4].map((more) =>
          executions.append(`t1/${hostId}`, piece('t1', n + more, `${n + more};`), undefined, true),
        ),
      )
  })
  const ended = Promise.all(writing).finally(() => {
    isWriting = false
  })
  const seen = new Map<number, string>()
  let last = 0
  for (let isLast = false; !isLast; ) {
    isLast = !isWriting
    for (let more = true; more; ) {
      const { entries, next } = await reader.outputs.read('t1', { after: last, limit: 50 })
      for (const { hostId, data, id } of entries) {
        t.true(id > last)
        seen.set(hostId, (seen.get(hostId) ?? '') + data)
      }
      more = next !== last
      last = next
    }
  }
  await ended
  const whole = Array.from({ length: pieces }, (_, n) => `${n};`).join('')
  t.deepEqual([...seen.values()], [whole, whole, whole])
})

test('a reader of changes misses nothing that three servers write', async (t) => {
  const { servers } = await site(t, ['a', 'b', 'c'])
  const [reader] = servers as [Server]
  const hostIds = Array.from({ length: 90 }, (_, n) => n + 1)
  await post(reader, hostIds)
  const known = new Map<string, ResultStatus>()
  const working = servers.map(async ({ executions, link }, at) => {
    for (const hostId of hostIds.filter((id) => id % 3 === at)) {
      await executions.take([offer(await link(hostId))])
      void executions.settle(`t1/${hostId}`, end('t1', hostId % 2))
    }
  })
  let cursor = 0
  const look = async () => {
    const news = await reader.executions.changes('t1', cursor)
    cursor = news.cursor
    for (const { id, status } of news.executions) known.set(id, status)
  }
  await Promise.all([
    ...working,
    until('all have ended', async () => {
      await look()
      return known.size === hostIds.length && [...known.values()].every(isFinal)
    }),
  ])
  for (const { execution: one } of await reader.executions.page('t1')) t.is(known.get(one.id), one.status)
  // Changes are repeated while the database server has an older transaction, including those of other tests.
  await until('no change is repeated', async () => {
    const news = await reader.executions.changes('t1', cursor)
    cursor = news.cursor
    return news.executions.length === 0
  })
})

test('another server carries out a cancel that its server abandoned; until then nothing is taken', async (t) => {
  const { shared, servers } = await site(t, ['a', 'b'])
  const [a, b] = servers as [Server, Server]
  await post(a, [1, 2])
  await a.executions.take([offer(await a.link(1))])
  const claim = await b.link(2)
  await shared.ask('api', `insert into rsm.cancels(task_id, at) values ('t1', $1)`, [at])
  t.deepEqual(await b.executions.take([offer(claim)]), [])
  await shared.ask('api', `update rsm.cancels set since = since - interval '1 minute'`)
  await until('the cancel is carried out', async () => (await b.executions.counts('t1'))?.CANCELLED === 1)
  await until('the other server sees the cancel', async () => {
    const found = await a.executions.find('t1', 1)
    return found?.execution.cancelRequested === true
  })
  t.deepEqual(await shared.ask('api', 'select * from rsm.cancels'), [])
})

test('a cancel during the start of many executions starts none afterwards and cancels every running one', async (t) => {
  const { servers } = await site(t, ['a', 'b', 'c'])
  const [a] = servers as [Server]
  const hostIds = Array.from({ length: 60 }, (_, n) => n + 1)
  await post(a, hostIds)
  const claims = await Promise.all(hostIds.map((hostId) => (servers[hostId % 3] as Server).link(hostId)))
  const taking = Promise.all(
    claims.map(async (claim, n) => {
      await pause(a, n / 2)
      return (servers[claim.hostId % 3] as Server).executions.take([offer(claim)])
    }),
  )
  await pause(a, 15)
  await a.executions.cancel('t1')
  const after = (await a.executions.page('t1')).map((running) => running.execution)
  for (const { status, cancelRequested } of after) t.true(status === 'CANCELLED' || cancelRequested)
  const taken = (await taking).flat()
  t.deepEqual(
    taken.map(({ id }) => id).toSorted(),
    after.flatMap((one) => (isFinal(one.status) ? [] : one.id)).toSorted(),
  )
})

test('a task on hold at one server is not started, given up or ended by another', async (t) => {
  const { servers } = await site(t, ['a', 'b'])
  const [a, b] = servers as [Server, Server]
  await post(a, [1])
  const claim = await b.link(1)
  await a.executions.held.add(['t1'])
  t.deepEqual(await b.executions.take([offer(claim)]), [])
  t.deepEqual(await b.executions.waiting([1]), [])
  await until('the other server sees the hold', () => b.executions.held.has('t1'))
  await b.executions.held.clear()
  t.deepEqual(statuses(await b.executions.take([offer(claim)])), ['t1/1 RUNNING'])
  await until('the first server sees the release', () => !a.executions.held.has('t1'))
})

test("F28 a server learns of another server's changes at once from hints, and by polling without them", async (t) => {
  for (const hints of [createLocalHints(), undefined]) {
    const { servers } = await site(t, ['a', 'b'], hints)
    const [a, b] = servers as [Server, Server]
    await post(a, [1])
    await b.executions.take([offer(await b.link(1))])
    await a.executions.cancel('t1')
    const isKnown = async () => (await b.executions.find('t1', 1))?.execution.cancelRequested === true
    if (hints) t.true(await isKnown())
    else await until('the change is visible', isKnown)
  }
})
