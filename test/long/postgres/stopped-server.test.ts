import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { lease, renewEvery } from '../../../src/server/storage/ports/cluster.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { soundAudit } from '../../helpers/audit/sound-audit.ts'
import { followThrough, type Heard } from '../../helpers/chaos/follower.ts'
import { task } from '../../helpers/clients/tasks.ts'
import { startCluster, clusterTest as test } from '../../helpers/cluster/cluster.ts'
import { JournalAgent, journalAgents, type Saying } from '../../helpers/cluster/journal-agent.ts'
import { faultsOf, type Said, sayAll, startedTwice } from '../../helpers/cluster/sayings.ts'
import { sharedPostgres } from '../../helpers/servers/postgres.ts'
import type { TestServer } from '../../helpers/servers/server.ts'
import { type ServerProcess, startServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

/** One task of each kind, long enough to be running when the server is stopped. */
const asked: readonly { saying: Saying; options: object }[] = [
  { saying: { pieces: 80, exitCode: 0 }, options: { strategy: 'SEQUENTIAL' } },
  { saying: { pieces: 300, exitCode: 0 }, options: {} },
  {
    saying: { pieces: 80, exitCode: 3 },
    options: { strategy: 'ROLLING', batchSize: 3, maxFailures: '100%' },
  },
  { saying: { pieces: 100, exitCode: 0 }, options: { concurrency: 2 } },
]

interface Begun {
  readonly taskIds: string[]
  /** Output of all followers, resolved once all tasks have ended. */
  readonly said: Promise<Said[]>
}

/** Starts the tasks at one server and follows them at another. */
async function begin(server: TestServer, follower: TestServer, hostIds: number[]): Promise<Begun> {
  const begun = await Promise.all(
    asked.map(async ({ saying, options }) => {
      const script = { content: JSON.stringify(saying) }
      const body = { script, target: { hostIds }, queueSeconds: 300, ...options }
      const { taskId } = await server.data('POST', '/api/tasks', body)
      return { saying, taskId: taskId as string }
    }),
  )
  const said = begun.map(async ({ saying, taskId }) => {
    const heard: Heard = { entries: [], resumed: 0 }
    return { saying, hostIds, heard, task: await followThrough(follower, taskId, heard) }
  })
  return { taskIds: begun.map(({ taskId }) => taskId), said: Promise.all(said) }
}

const startsOf = (agents: readonly JournalAgent[]) =>
  agents.reduce((sum, { frames, dropped }) => sum + frames - dropped, 0)

/** Resolves once each task has ended or belongs to a server other than `name`. */
const takenOver = (at: TestServer, taskIds: readonly string[], name: string) =>
  until('other servers have its tasks', async () => {
    const all = await Promise.all(taskIds.map((taskId) => task(at, taskId)))
    return all.every(
      ({ status, server }) => status !== 'RUNNING' || (typeof server === 'string' && server !== name),
    )
  })

async function owned(t: ExecutionContext, at: TestServer, taskIds: readonly string[], name: string) {
  for (const taskId of taskIds) {
    const { status, server } = await task(at, taskId)
    t.deepEqual({ status, server }, { status: 'RUNNING', server: name })
  }
}

test('F24 a server is suspended past its lease: others continue its tasks, it rejoins, and nothing starts twice', async (t) => {
  t.timeout(300_000)
  const { servers, front } = await startCluster(t)
  const [a, b, c] = servers as readonly [ServerProcess, ServerProcess, ServerProcess]
  const agents = await journalAgents(t, front, { count: 8, pace: 40 })
  const toStay = agents.map(({ identity }) => identity.hostId)
  // This agent knows no other server: its link lasts as long as the suspended one.
  const loyal = new JournalAgent(a.url, await a.enroll('loyal'), 40)
  t.teardown(() => loyal.stop())
  void loyal.run()
  agents.push(loyal)
  const hostIds = [...toStay, loyal.identity.hostId]
  const life = async () => {
    const { content } = await c.data('GET', '/api/servers')
    const { startedAt, faults } = content.find(({ name }: { name: string }) => name === 'server1')
    return { startedAt, faults }
  }
  const before = await life()
  t.deepEqual(before.faults, [])
  const { taskIds, said } = await begin(a, b, hostIds)
  await until('all tasks are in progress', () => startsOf(agents) >= 1 + hostIds.length + 3 + 2)
  await owned(t, b, taskIds, 'server1')

  const { pid } = a
  a.signal('SIGSTOP')
  const stoppedAt = performance.now()
  await takenOver(b, taskIds, 'server1')
  const took = performance.now() - stoppedAt
  t.log(`others had its tasks after ${Math.round(took)} ms; ${startsOf(agents)} executions had started`)
  t.true(took > lease - renewEvery - 1000 && took < 2 * lease, `${took}`)
  t.regex((await life()).faults.join(), /its lease expired \d+ s ago/)
  const meanwhile = await sayAll(
    { front: b, follower: c },
    { saying: { pieces: 5, exitCode: 0 }, hostIds: toStay },
  )
  t.true(startsOf([loyal]) < asked.length, 'some executions wait for its return')

  a.signal('SIGCONT')
  await until('the server is ready', async () => (await a.api('GET', '/api/ready')).status === 200)
  const after = await sayAll({ front: a, follower: c }, { saying: { pieces: 5, exitCode: 0 }, hostIds })
  const all = [...(await said), meanwhile, after]
  t.deepEqual(all.flatMap(faultsOf), [])
  t.deepEqual(startedTwice(agents), [])
  t.is(
    startsOf(agents),
    all.reduce((sum, { hostIds: its }) => sum + its.length, 0),
  )
  t.is(a.pid, pid)
  t.deepEqual(await life(), before, 'the server has not restarted, and has no faults')
  await soundAudit(t, a)
})

test('F24 a suspended server whose name was taken stops once resumed, and nothing starts twice', async (t) => {
  t.timeout(300_000)
  const postgres = await sharedPostgres()
  const store = await postgres.database()
  const keysDir = join(temporaryDirectory(t), 'keys')
  const [a, b] = [
    await startServerProcess(t, { logLevel: 'INFO', options: { store, keysDir, serverName: 'a' } }),
    await startServerProcess(t, { options: { store, keysDir, serverName: 'b' } }),
  ]
  const agents = await journalAgents(t, b, { count: 6, pace: 40 })
  const hostIds = agents.map(({ identity }) => identity.hostId)
  const { taskIds, said } = await begin(a, b, hostIds)
  await until('all tasks are in progress', () => startsOf(agents) >= 1 + hostIds.length + 3 + 2)
  await owned(t, b, taskIds, 'a')

  a.signal('SIGSTOP')
  await takenOver(b, taskIds, 'a')
  const successor = await startServerProcess(t, { options: { store, keysDir, serverName: 'a' } })
  a.signal('SIGCONT')
  await a.ended()
  t.regex(a.logged(), /another server has taken the name a: this server stops/)
  const after = await sayAll(
    { front: successor, follower: b },
    { saying: { pieces: 5, exitCode: 0 }, hostIds },
  )
  const all = [...(await said), after]
  t.deepEqual(all.flatMap(faultsOf), [])
  t.deepEqual(startedTwice(agents), [])
  t.is(startsOf(agents), all.length * hostIds.length)
  const { content } = await b.data('GET', '/api/servers')
  t.deepEqual(
    content.map(({ name, faults }: { name: string; faults: string[] }) => ({ name, faults })),
    ['a', 'b'].map((name) => ({ name, faults: [] })),
  )
})
