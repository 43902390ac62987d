import { setTimeout } from 'node:timers/promises'
import { startLoad } from '../load/load.ts'
import { heartbeatText, registerAgents } from '../rest/register.ts'
import type { Row } from '../row.ts'
import { type Shared, startShared } from './shared.ts'

const hosts = 10_000
const servers = 2
const connections = 16
/** Several times the interval at which presence is written. */
const milliseconds = 20_000
/** Heartbeats per second of 100,000 hosts, each every 30 s. */
const goalRate = 3333
/** Heartbeats per second; below this rate the constant cost of presence outweighs the heartbeats. */
const leastRate = 1000
/** Percent of a core. */
const most = 2

/** Percent of a core that PostgreSQL uses until `over` resolves. */
async function cpuWhile<T>({ used }: Shared, over: Promise<T>): Promise<{ percent: number; result: T }> {
  const from = used().postgres
  const start = performance.now()
  const result = await over
  return { percent: ((used().postgres - from) * 100_000) / (performance.now() - start), result }
}

/** The cost of presence for PostgreSQL: heartbeats at full speed, minus its load without them (reliability L07). */
export async function benchSharedHeartbeats(): Promise<Row[]> {
  const shared = await startShared(servers)
  const loads = shared.servers.map(() => startLoad())
  try {
    const [first] = shared.servers
    const agents = first ? await registerAgents(first, hosts) : []
    const beat = () => {
      const runs = loads.map((one, at) => {
        const port = Number(new URL(shared.servers[at]?.url ?? '').port)
        const requests = agents
          .filter((_, index) => index % servers === at)
          .map((agent) => heartbeatText(agent))
        return one.run({ port, requests, connections, milliseconds })
      })
      return Promise.all(runs)
    }
    // The first heartbeat of each host looks up its token, and work left by registrations is not part of the measure.
    await beat()
    await setTimeout(milliseconds / 2)
    const idle = await cpuWhile(shared, setTimeout(milliseconds))
    const busy = await cpuWhile(shared, beat())
    const rate = busy.result.reduce((sum, { perSecond }) => sum + perSecond, 0)
    const ours = ((busy.percent - idle.percent) * goalRate) / rate
    return [
      {
        name: `PostgreSQL: its processor time for ${goalRate} heartbeats/s, scaled from ${rate.toFixed(0)}/s, vs idle`,
        unit: '% of a core',
        ours,
        baseline: idle.percent,
        ratio: ours / idle.percent,
        goal: `≤ ${most} %`,
        met: rate < leastRate ? null : ours <= most,
      },
    ]
  } finally {
    for (const load of loads) load.stop()
    await shared.stop()
  }
}
