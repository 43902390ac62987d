/**
 * A large fleet on several servers of one PostgreSQL, on this machine alone: `node dist/bench/cluster/report.js --agents 100000
 * --servers 6`. It takes long, so it is not a group of `npm run bench`. It exits with 1 if a result is not SUCCESS, an agent
 * was sent an execution twice, or a server with at most 17,000 links takes more than 900 MB.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import type { TaskSummary } from '../../src/core/protocol/http/tasks.ts'
import { patiently } from '../fleet/patiently.ts'
import { residentMB } from '../measure.ts'
import { type RegisteredAgent, registerAgents } from '../rest/register.ts'
import type { FleetState } from './agents.ts'
import { type LargeFleet, startLargeFleet } from './fleet.ts'
import { startShared, type Used } from './shared.ts'

const idleSeconds = 20
/** Limit of a server's memory, and the number of links up to which it applies. */
const [mostMB, linksOfMost] = [900, 17_000]
/** Milliseconds. */
const longestStep = 60 * 60_000

const { values } = parseArgs({
  options: {
    agents: { type: 'string', default: '100000' },
    servers: { type: 'string', default: '6' },
    // At 120 s, heartbeats alone use half of a machine with two cores, which the agents share.
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

function fail(what: string): void {
  say(`  NOT MET: ${what}`)
  process.exitCode = 1
}

function sayMemory(name: string): number[] {
  const each = servers.map((server) => Math.round(residentMB(server.child.pid)))
  say(`${name}: resident memory of the servers ${each.join(', ')} MB`)
  return each
}

/** Call while each server has its share of the links. */
function judgeMemory(name: string): void {
  const most = Math.max(...sayMemory(name))
  if (agentCount / serverCount <= linksOfMost && most > mostMB) fail(`a server takes more than ${mostMB} MB`)
}

/** Like `fleet.until`, with a timeout. */
async function untilIn(
  fleet: LargeFleet,
  what: string,
  fulfilled: (state: FleetState) => boolean,
): Promise<void> {
  const late = delay(longestStep, null, { ref: false }).then(() => {
    throw new Error(`${what}: not within ${longestStep / 60_000} minutes: ${JSON.stringify(fleet.state)}`)
  })
  await Promise.race([late, fleet.until(fulfilled)])
}

async function register(): Promise<RegisteredAgent[]> {
  const from = await moment()
  const [first] = servers
  if (!first) throw new Error('no server')
  const agents = await registerAgents(first, agentCount)
  await sayStep('registered, with a heartbeat and metrics', from, agentCount)
  return agents
}

/** Load without links, which the figures of heartbeats include. */
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
  if (!first) throw new Error('no server')
  const task = { script: { content: 'true' }, target: { selector: '*' }, queueSeconds: 600 }
  const key = randomUUID()
  const { taskId } = await patiently(() => first.call('POST', '/api/tasks', task, key))
  await meanwhile?.()
  // Reads the newest task from the list, because a list reads no results of 100,000 hosts.
  const newest = async () => {
    const { content } = await first.call('GET', '/api/tasks?page=0&size=1')
    return (content as TaskSummary[]).find((one) => one.taskId === taskId)
  }
  const began = performance.now()
  for (;;) {
    const seen = await patiently(newest)
    if (seen && seen.status !== 'RUNNING') {
      await sayStep(title, from, agentCount)
      say(`  ended ${seen.status}: ${JSON.stringify(seen.counts)}`)
      if (seen.counts.SUCCESS !== agentCount) fail('not all results are SUCCESS')
      return
    }
    if (performance.now() - began > longestStep) throw new Error(`${title}: the task does not end`)
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
  await untilIn(fleet, 'linking', ({ open }) => open === agentCount)
  await sayStep('linked, with the heartbeats of that time', from, agentCount)
  judgeMemory(`${agentCount} links`)
  await delay(10_000)
  from = await moment()
  const { beats } = fleet.state
  await delay(heartbeatSeconds * 1000)
  await sayStep('heartbeats', from, fleet.state.beats - beats)
  judgeMemory('after them')
  await runOnAll('one task on all hosts')
  judgeMemory('after it')
  const last = servers.length - 1
  await runOnAll('one task on all hosts, with a server killed during it', async () => {
    const sent = fleet.state.frames
    await untilIn(fleet, 'a tenth of the task', ({ frames }) => frames >= sent + agentCount / 10)
    await shared.kill(last)
    const killed = performance.now()
    await shared.startAgain(last)
    await untilIn(fleet, 'linking again', ({ open }) => open === agentCount)
    say(`  all links are open again ${((performance.now() - killed) / 1000).toFixed(1)} s after the kill`)
  })
  sayMemory('at the end')
  const { frames, twice } = fleet.state
  say(`${frames} executions sent, ${twice} of them to agents that already had them`)
  if (twice > 0) fail('agents were sent executions that they already had')
  const { rows } = await watcher.query<{ size: string }>(
    'select pg_database_size(current_database()) as size',
  )
  say(`the database takes ${mb(Number(rows[0]?.size))}`)
} finally {
  for (const end of ends.toReversed()) await end()
}
