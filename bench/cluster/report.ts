/**
 * A large fleet on several servers of one PostgreSQL, on this machine alone: `node dist/bench/cluster/report.js --agents 100000
 * --servers 6`. It takes long, so it is no group of `npm run bench`.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { residentMB } from '../measure.ts'
import { type RegisteredAgent, registerAgents } from '../rest/register.ts'
import { startLargeFleet } from './fleet.ts'
import { startShared, type Used } from './shared.ts'

const idleSeconds = 20

const { values } = parseArgs({
  options: {
    agents: { type: 'string', default: '100000' },
    servers: { type: 'string', default: '6' },
    // At 120 s, heartbeats alone take half of a machine with two cores, on which the agents run, too.
    heartbeat: { type: 'string', default: '300' },
  },
})
const agentCount = Number(values.agents)
const serverCount = Number(values.servers)
const heartbeatSeconds = Number(values.heartbeat)

const ends: (() => void | Promise<void>)[] = []

const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)}  ${text}`)
const per = (seconds: number, count: number) => `${((seconds / count) * 1000).toFixed(3)} ms`
const mb = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`

const shared = await startShared(serverCount, ['--heartbeat-interval', String(heartbeatSeconds)])
ends.push(() => shared.stop())
const { servers } = shared
const watcher = new pg.Client({ connectionString: shared.store })
await watcher.connect()
ends.push(() => watcher.end())

interface Moment extends Used {
  at: number
  wal: number
  rows: number
}

async function moment(): Promise<Moment> {
  const { rows } = await watcher.query<{ wal: string; rows: string }>(
    `select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as wal,
      (select sum(n_tup_ins + n_tup_upd + n_tup_del) from pg_stat_user_tables) as rows`,
  )
  return {
    at: performance.now(),
    ...shared.used(),
    wal: Number(rows[0]?.wal),
    rows: Number(rows[0]?.rows),
  }
}

async function sayStep(name: string, from: Moment, count: number): Promise<void> {
  const to = await moment()
  const seconds = (to.at - from.at) / 1000
  say(
    `${name}: ${count} in ${seconds.toFixed(1)} s (${(count / seconds).toFixed(0)} a second); each: servers ${per(to.servers - from.servers, count)}, PostgreSQL ${per(to.postgres - from.postgres, count)} of processor time; ${((to.rows - from.rows) / count).toFixed(2)} rows, ${((to.wal - from.wal) / count).toFixed(0)} bytes of WAL`,
  )
}

function sayMemory(name: string): void {
  const each = servers.map((server) => Math.round(residentMB(server.child.pid)))
  say(`${name}: resident memory of the servers ${each.join(', ')} MB`)
}

async function register(): Promise<RegisteredAgent[]> {
  const from = await moment()
  const [first] = servers
  if (!first) throw new Error('there is no server')
  const agents = await registerAgents(first, agentCount)
  await sayStep('registered, with a heartbeat and metrics', from, agentCount)
  return agents
}

/** What the figures of heartbeats hold besides them. */
async function runIdle(): Promise<void> {
  const from = await moment()
  await delay(idleSeconds * 1000)
  const to = await moment()
  const percent = (of: keyof Used) => (((to[of] - from[of]) / idleSeconds) * 100).toFixed(1)
  say(`nothing linked: servers ${percent('servers')} %, PostgreSQL ${percent('postgres')} % of a core`)
}

async function runOnAll(title: string, meanwhile?: () => Promise<void>): Promise<void> {
  const from = await moment()
  const [first] = servers
  if (!first) throw new Error('there is no server')
  const { taskId } = await first.call('POST', '/api/tasks', {
    script: { content: 'true' },
    target: { selector: '*' },
    queueSeconds: 600,
  })
  await meanwhile?.()
  for (;;) {
    // Under such load an answer may come too late for the server itself: as clients do, this asks again.
    const seen = await first.call('GET', `/api/tasks/${String(taskId)}?page=0&size=1`).catch(() => null)
    const { status = 'RUNNING', counts } = seen ?? {}
    if (status !== 'RUNNING') {
      await sayStep(title, from, agentCount)
      say(`  ended ${String(status)}: ${JSON.stringify(counts)}`)
      return
    }
    await delay(250)
  }
}

try {
  sayMemory(`${serverCount} servers, nothing registered`)
  const agents = await register()
  sayMemory(`${agentCount} hosts registered`)
  await runIdle()
  let from = await moment()
  const fleet = startLargeFleet(
    servers.map(({ url }) => url),
    agents,
    heartbeatSeconds * 1000,
  )
  ends.push(() => fleet.stop())
  await fleet.until(({ open }) => open === agentCount)
  await sayStep('linked, with the heartbeats of that time', from, agentCount)
  sayMemory(`${agentCount} links`)
  await delay(10_000)
  from = await moment()
  const { beats } = fleet.state
  await delay(heartbeatSeconds * 1000)
  await sayStep('heartbeats', from, fleet.state.beats - beats)
  sayMemory('after them')
  await runOnAll('one task on all')
  const last = servers.length - 1
  await runOnAll('one task on all, a server killed in its midst', async () => {
    const sent = fleet.state.frames
    await fleet.until(({ frames }) => frames >= sent + agentCount / 10)
    await shared.kill(last)
    const killed = performance.now()
    await shared.startAgain(last)
    await fleet.until(({ open }) => open === agentCount)
    say(`  all links stand again ${((performance.now() - killed) / 1000).toFixed(1)} s after the kill`)
  })
  sayMemory('at the end')
  const { frames, twice } = fleet.state
  say(`${frames} executions sent, ${twice} of them to agents that had them`)
  if (twice > 0) process.exitCode = 1
  const { rows } = await watcher.query<{ size: string }>(
    'select pg_database_size(current_database()) as size',
  )
  say(`the database takes ${mb(Number(rows[0]?.size))}`)
} finally {
  for (const end of ends.toReversed()) await end()
}
