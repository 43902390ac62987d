import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { loggedAgent } from '../../helpers/agents/logged-agent.ts'
import { followThrough, type Heard } from '../../helpers/chaos/follower.ts'
import { startTask } from '../../helpers/clients/tasks.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

/** Milliseconds: the limit of F17, doubled for a busy machine. */
const longest = 20_000

test('F17 SIGTERM under load: writes in progress finish, new ones get 503, links close with 1001, tasks continue afterwards', async (t) => {
  t.timeout(300_000)
  const server = await startServerProcess(t)
  const root = await temporaryDirectory(t)
  const enrollment = await server.data('POST', '/api/enrollment-tokens', { maxUses: 5 })
  const agents = await Promise.all(
    Array.from({ length: 5 }, (_, at) =>
      loggedAgent(t, server, join(root, `web${at}`), {
        enrollToken: enrollment.token,
        hostname: `web${at}`,
      }),
    ),
  )
  await until('all agents are linked', () =>
    agents.every((agent) => agent.count('linked to the server') === 1),
  )
  const hosts = (await server.data('GET', '/api/hosts')).content as { id: number }[]
  const hostIds = hosts.map(({ id }) => id)
  const content = 'for ((i=1;i<=60;i++)); do echo "line $i"; sleep 0.1; done; exit 6'
  const tasks = [
    await startTask(server, hostIds, { script: { content } }),
    await startTask(server, hostIds, {
      script: { content },
      strategy: 'ROLLING',
      batchSize: 2,
      maxFailures: '100%',
    }),
  ]
  const heard: Heard[] = tasks.map(() => ({ entries: [], resumed: 0 }))
  const ended = tasks.map((taskId, at) => followThrough(server, taskId, heard[at] as Heard))

  const written: string[] = []
  const statuses = new Map<number, number>()
  const stopping = new AbortController()
  const writer = async (n: number) => {
    for (let i = 0; !stopping.signal.aborted; i += 1) {
      const name = `script-${n}-${i}`
      const answer = await server
        .api('POST', '/api/scripts', { name, type: 'BASH', content: 'true' })
        .catch(() => null)
      if (!answer) {
        await delay(5)
        continue
      }
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      if (answer.status === 201) written.push(name)
    }
  }
  const writers = Array.from({ length: 8 }, (_, n) => writer(n))
  await until('the writers are running', () => written.length >= 50)
  const { code, took } = await server.terminate()
  stopping.abort()
  await Promise.all(writers)
  t.log(`ended after ${Math.round(took)} ms; ${written.length} writes`, Object.fromEntries(statuses))
  t.is(code, 0)
  t.true(took < longest, `${took} ms`)
  t.deepEqual(
    [...statuses.keys()].filter((status) => status !== 201 && status !== 503),
    [],
  )
  await until('all agents notice the close', () =>
    agents.every((agent) => agent.count('no link to the server') > 0),
  )
  for (const { log } of agents) t.is(log.find(({ msg }) => msg === 'no link to the server')?.['code'], 1001)

  await server.start()
  const kept = new Set<string>()
  for (let page = 0, pages = 1; page < pages; page += 1) {
    const list = await server.data('GET', `/api/scripts?size=500&page=${page}`)
    for (const { name } of list.content) kept.add(name)
    pages = list.totalPages
  }
  t.deepEqual(
    written.filter((name) => !kept.has(name)),
    [],
    'every write that got 201 exists',
  )
  const whole = Array.from({ length: 60 }, (_, at) => `line ${at + 1}\n`).join('')
  for (const [at, task] of (await Promise.all(ended)).entries())
    for (const { hostId, exitCode, outputComplete } of task.results) {
      t.is(exitCode, 6)
      t.true(outputComplete)
      const entries = heard[at]?.entries.filter((entry) => entry.hostId === hostId) ?? []
      t.is(entries.map(({ data }) => data).join(''), whole)
    }
})
