import { cpus } from 'node:os'
import { untilFinal } from '../execution.ts'
import { inTurn, median, ratioRow } from '../measure.ts'
import { registerAgents } from '../rest/register.ts'
import type { Row } from '../row.ts'
import { startLargeFleet } from './fleet.ts'
import { type Shared, startShared, type Used } from './shared.ts'

const agents = 1000
const tasks = 3
const rounds = 5
const heartbeatInterval = 30_000
/** Cores for three servers, PostgreSQL and the agents. */
const coresToTell = 6

/** Milliseconds of processor time per execution. */
interface Work extends Used {
  readonly perSecond: number
}

interface Site {
  work(): Promise<Work>
  stop(): Promise<void>
}

/** Runs as many tasks at once as the larger site has servers, each on all agents; servers take turns. */
async function work({ servers, used }: Shared): Promise<Work> {
  const from = used()
  const start = performance.now()
  await Promise.all(
    Array.from({ length: tasks }, async (_, task) => {
      const server = servers[task % servers.length]
      if (server) await untilFinal(server)
    }),
  )
  const milliseconds = performance.now() - start
  const to = used()
  const executions = tasks * agents
  const each = (seconds: number) => (seconds * 1000) / executions
  return {
    perSecond: (executions * 1000) / milliseconds,
    servers: each(to.servers - from.servers),
    postgres: each(to.postgres - from.postgres),
  }
}

async function open(size: number): Promise<Site> {
  const shared = await startShared(size)
  try {
    const [first] = shared.servers
    const registered = first ? await registerAgents(first, agents) : []
    const urls = shared.servers.map(({ url }) => url)
    const fleet = startLargeFleet(urls, registered, heartbeatInterval)
    await fleet.until(({ open: count }) => count === agents)
    return {
      work: () => work(shared),
      async stop() {
        await fleet.stop()
        await shared.stop()
      },
    }
  } catch (error) {
    await shared.stop()
    throw error
  }
}

function rateRow(name: string, works: Parameters<typeof ratioRow>[2]): Row {
  const row = ratioRow(name, 'executions/s', works, { atLeast: 1.5 })
  const cores = cpus().length
  if (cores >= coresToTell) return row
  return { ...row, goal: `${row.goal} on ${coresToTell} cores; here ${cores}`, met: row.met || null }
}

/**
 * Tasks on many agents of three servers vs the same on one, both on PostgreSQL. With too few cores for three servers, processor
 * time is the measure: three cores do 1.5 times the work of one if an execution costs at most twice as much (reliability L07).
 */
export async function benchSpread(): Promise<Row[]> {
  const three = await open(3)
  try {
    const one = await open(1)
    try {
      const done: Record<'three' | 'one', Work[]> = { three: [], one: [] }
      const of = async (site: Site, into: Work[]) => {
        const worked = await site.work()
        into.push(worked)
        return worked.perSecond
      }
      const measured = await inTurn(
        rounds,
        () => of(three, done.three),
        () => of(one, done.one),
      )
      const costRow = (who: 'servers' | 'postgres', name: string) => {
        const [ours, baseline] = [done.three, done.one].map((works) =>
          works.slice(1).map((each) => each[who]),
        )
        const ratios = (ours ?? [])
          .map((cost, round) => cost / (baseline?.[round] ?? Number.NaN))
          .toSorted((a, b) => a - b)
        const costs = { ours: median(ours ?? []), baseline: median(baseline ?? []), ratios }
        return ratioRow(`PostgreSQL: processor time of ${name} per execution, vs one server`, 'ms', costs, {
          atMost: 2,
        })
      }
      return [
        rateRow(`PostgreSQL: ${agents} protocol-level agents on three servers, vs one server`, measured),
        costRow('servers', 'three servers'),
        costRow('postgres', 'PostgreSQL with three servers'),
      ]
    } finally {
      await one.stop()
    }
  } finally {
    await three.stop()
  }
}
